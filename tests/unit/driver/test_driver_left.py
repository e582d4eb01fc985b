"""A driver that the spec names no more: what is left of it is seen, is an action each, and is what the role removes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

from llamarig.compare import compare
from llamarig.compare.driver_left import AT_BOOT
from llamarig.compare.probe_list import probe_list
from llamarig.compare.redo import changes
from llamarig.compare.view import View
from llamarig.render import driver as rendered
from llamarig.render.driver import OURS, PIN, SOURCE, UPGRADES
from llamarig.render.wanted import UNITS
from tests.support.compare.cases import Case, observation
from tests.support.docs.refusals import spec_of
from tests.support.observe.load import part

left = part("rig_driver_left")

ROOT = Path(__file__).resolve().parents[3]
STATUS = """Package: libcuda1
Status: hold ok installed
Architecture: amd64
Version: 610.57.04-1

Package: nvidia-smi
Status: install ok installed
Architecture: amd64
Version: 610.57.04-1

Package: nvidia-container-toolkit
Status: hold ok installed
Architecture: amd64
Version: 1.17.4-1
"""


def found(case: Case) -> dict[str, str]:
    return {action.subject: action.reason for action in compare(case.wanted, case.observed) if action.kind == "driver"}


def without_driver(seen: Any) -> Case:
    case = Case()
    assert case.wanted.driver is None
    case.observed["driver-left"] = seen
    return case


def write(root: Path, path: str, content: str = "") -> None:
    place = root / path.lstrip("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(content)


def test_a_host_that_never_had_one_has_nothing_to_do() -> None:
    assert found(without_driver(None)) == {}


def test_each_thing_that_is_left_is_an_action_of_its_own() -> None:
    case = without_driver({"files": [PIN, SOURCE], "held": ["libcuda1"]})
    told = found(case)
    assert set(told) == {PIN, SOURCE, "libcuda1"}
    assert told[PIN] == "is left of a driver that the spec names no more"
    assert told["libcuda1"] == "libcuda1 is held for a driver that the spec names no more"
    (row,) = changes(View(case.wanted, case.observed), compare(case.wanted, case.observed))
    assert (row.what, row.after, row.redone) == ("driver", "none", "holds, pin and lists go, its packages stay")


def test_a_hold_without_a_file_of_ours_is_somebody_elses() -> None:
    assert found(without_driver({"files": [], "held": ["libcuda1"]})) == {}
    assert found(without_driver({"files": ["/etc/passwd"], "held": ["libcuda1"]})) == {}


@pytest.mark.parametrize("seen", [7, [], {"files": 7}, {"files": [PIN], "held": {"x": 1}}, {"held": ["x"]}])
def test_a_malformed_look_names_nothing_that_is_not_ours(seen: Any) -> None:
    assert set(found(without_driver(seen))) <= {PIN}


def on_cards(case: Case) -> Case:
    case.want(release=replace(case.wanted.release, backend="cuda"))
    return case


def test_what_cards_need_at_boot_stays_while_services_run_on_them() -> None:
    seen = {"files": list(OURS), "held": ["libcuda1"]}
    case = without_driver(seen)
    assert set(found(case)) == {*OURS, "libcuda1"}
    assert set(found(on_cards(case))) == {PIN, SOURCE, UPGRADES, "libcuda1"}
    case.observed["driver-left"] = {"files": list(AT_BOOT), "held": ["libcuda1"]}
    assert found(case) == {}


def test_the_host_is_asked_for_no_more_than_goes(tmp_path: Path) -> None:
    case = on_cards(without_driver(None))
    asked = probe_list(case.wanted)["driver-left"]
    assert set(asked["files"]) == set(OURS) - set(AT_BOOT)
    for path in AT_BOOT:
        write(tmp_path, path)
    assert left.look(asked, str(tmp_path)) is None
    assert left.look(probe_list(Case().wanted)["driver-left"], str(tmp_path))["files"] == list(AT_BOOT)


@pytest.mark.parametrize("cards", [True, False])
def test_the_role_removes_what_the_comparison_names(cards: bool) -> None:
    variables = yaml.safe_load((ROOT / "roles/nvidia_driver/vars/main.yml").read_text())
    own = {name: trust_as_template(text) if isinstance(text, str) else text for name, text in variables.items()}
    templar = Templar(DataLoader(), variables={**own, "nvidia_driver_cards": cards})
    removed = templar.template(trust_as_template("{{ __nvidia_driver_removed }}"))
    case = without_driver(None)
    asked = probe_list((on_cards(case) if cards else case).wanted)["driver-left"]
    assert {path for path in removed if path in OURS} == set(asked["files"])
    assert any(path.startswith(f"{UNITS}/multi-user.target.wants/") for path in removed) is not cards
    assert removed[-1] == PIN


def test_where_a_driver_is_wanted_nothing_of_it_is_left_over() -> None:
    spec, _ = spec_of("cuda", "driver: {flavour: open}")
    case = Case()
    case.want(driver=rendered.driver(spec, Path("/nowhere")))
    case.observed = observation(case.wanted)
    case.observed["driver-left"] = {"files": list(OURS), "held": ["libcuda1"]}
    assert found(case) == {}
    assert probe_list(case.wanted)["driver-left"] is None


def test_debians_own_driver_finds_the_list_of_the_repository_before_it() -> None:
    spec, _ = spec_of("cuda", "driver: {source: debian, version: 550.163.01, flavour: open}")
    case = Case()
    case.want(driver=rendered.driver(spec, Path("/nowhere")))
    case.observed = observation(case.wanted)
    assert found(case) == {}
    case.observed["driver"]["stale"] = [SOURCE]
    assert found(case) == {SOURCE: "the list of a repository from which no driver is wanted any more"}


def test_the_host_is_asked_and_answers(tmp_path: Path) -> None:
    asked = probe_list(Case().wanted)["driver-left"]
    write(tmp_path, "var/lib/dpkg/status", STATUS)
    assert left.look(asked, str(tmp_path)) is None
    write(tmp_path, PIN)
    assert left.look(asked, str(tmp_path)) == {"files": [PIN], "held": ["libcuda1"]}
    assert left.look(None, str(tmp_path)) is None


def test_every_file_that_a_driver_brings_is_ours_and_the_role_removes_it() -> None:
    # Read as text: the templates in it are Ansible's.
    named = yaml.safe_load((ROOT / "roles/nvidia_driver/vars/main.yml").read_text())["__nvidia_driver_files"]
    assert set(OURS) < set(named)
    assert [path for path in named if path not in OURS] == [
        f"/etc/systemd/system/multi-user.target.wants/{rendered.NODES}"
    ]
    assert named[-1] == PIN, "what an interruption leaves is found again"
    for fragment in ("driver: {flavour: open}", "driver: {source: debian, version: 550.163.01, flavour: open}"):
        made = rendered.driver(spec_of("cuda", fragment)[0], Path("/nowhere"))
        assert made is not None
        assert {file.path for file in made.files} <= set(OURS)


def test_holds_are_released_once_no_other_dpkg_works() -> None:
    """dpkg --set-selections, which apt-mark runs, gives up at once where another one has the lock."""
    tasks = yaml.safe_load((ROOT / "roles/nvidia_driver/tasks/remove.yml").read_text())
    (waits,) = [number for number, task in enumerate(tasks) if "rig_apt_wait" in task]
    assert tasks[waits + 1]["ansible.builtin.command"]["argv"].startswith("{{ ['apt-mark', 'unhold'")
    assert tasks[waits]["when"] == tasks[waits + 1]["when"] == "__nvidia_driver_held | length > 0"
    installs = yaml.safe_load((ROOT / "roles/nvidia_driver/tasks/install.yml").read_text())
    assert {key: value for key, value in tasks[waits].items() if key != "when"} in installs


def test_a_driver_is_installed_or_taken_away_and_never_both() -> None:
    text = (ROOT / "playbooks/site.yml").read_text()
    (play,) = yaml.safe_load(text)
    (block,) = [task["block"] for task in play["tasks"] if task["name"] == "Converge while the lock is held"]
    conditions = {
        task["ansible.builtin.include_role"].get("tasks_from", "main"): task["when"]
        for task in block
        if task.get("ansible.builtin.include_role", {}).get("name") == "nvidia_driver"
    }
    wanted = "'driver' in llamarig_todo and llamarig_wanted.driver is {}none"
    assert conditions == {
        "preflight": wanted.format("not "),
        "main": wanted.format("not "),
        "remove": wanted.format(""),
    }
