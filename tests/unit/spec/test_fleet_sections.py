"""The sections of a fleet.yml beside its defaults: what counts where, and what is wrong on which line."""

from __future__ import annotations

from pathlib import Path

import pytest

from llamarig.spec.fleet import Fleet, read_fleet
from llamarig.spec.load import load_project
from llamarig.spec.rollout import Rollout


def fleet(root: Path, text: str, parent: Fleet | None = None) -> Fleet:
    root.mkdir(parents=True, exist_ok=True)
    (root / "fleet.yml").write_text("schema-version: 1\n" + text)
    return read_fleet(root / "fleet.yml", parent or Fleet(), root)


def rollout(found: Fleet) -> Rollout:
    assert found.errors == ()
    assert found.sections.rollout is not None
    return found.sections.rollout


def test_a_rollout_is_read_and_needs_no_defaults(tmp_path: Path) -> None:
    text = "rollout: {canary: 2, waves: [3, 50%], by: room, failures: 1, busy: {users: ignore, drain-s: 5}}\n"
    read = rollout(fleet(tmp_path, text))
    assert (read.canary, read.waves, read.by, read.failures) == (2, [3, "50%"], "room", 1)
    assert (read.busy.users, read.busy.drain_s, read.busy.requests_within_min) == ("ignore", 5, 10)


def test_a_nearer_section_lies_on_that_above(tmp_path: Path) -> None:
    above = fleet(tmp_path, "rollout: {canary: 2, waves: [1, 2], busy: {drain-s: 5}}\n")
    below = rollout(fleet(tmp_path / "lab", "rollout: {waves: [4], busy: {users: ignore}}\n", above))
    assert (below.canary, below.waves) == (2, [4])
    assert (below.busy.drain_s, below.busy.users) == (5, "ignore")
    assert rollout(above).busy.users == "defer"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("  canary: -1", "must be at least 0"),
        ("  canary: 1.5", "must be a whole number"),
        ("  canary-labels: [room]", "must be a mapping"),
        ("  waves: [0]", "`rollout.waves[0]` is 0, but must be at least 1"),
        ("  waves: [-1]", "`rollout.waves[0]` is -1, but must be at least 1"),
        ("  waves: [10001]", "`rollout.waves[0]` is 10001, but must be at most 10000"),
        ("  waves: [٢]", "is '٢', but must be a whole number or a share"),
        ("  waves: [101%]", "share from 1% to 100%"),
        ("  waves: []", "names no wave"),
        ("  waves: 25%", "must be a list"),
        ("  by: Room", "must be a name"),
        ("  failures: many", "must be a whole number"),
        ("  unreachable: done", "one of defer, fail"),
        ("  wake: on", "true or false"),
        ("  busy: {users: never}", "one of defer, ignore"),
        ("  busy: {drain_s: 3}", "is written `drain-s`"),
        ("  busy: {drain-s: -1}", "at least 0"),
        ("  bye: room", "`bye` is no key of rollout"),
    ],
)
def test_an_error_stands_on_its_line(tmp_path: Path, line: str, words: str) -> None:
    found = fleet(tmp_path, f"rollout:\n  failures: 0\n{line}\n" if "failures" not in line else f"rollout:\n\n{line}\n")
    [problem] = found.own_errors
    assert words in problem.message
    assert (problem.path, problem.line) == (tmp_path / "fleet.yml", 4)
    assert problem.fix
    assert found.errors == (problem,)


def test_a_label_is_asked_for_by_the_example_of_one(tmp_path: Path) -> None:
    [problem] = fleet(tmp_path, "rollout: {by: Room}\n").own_errors
    assert problem.fix == "for example room"


def test_an_error_of_the_directory_above_is_said_once(tmp_path: Path) -> None:
    above = fleet(tmp_path, "rollout: {canary: -1}\n")
    below = fleet(tmp_path / "lab", "rollout: {failures: 2}\n", above)
    assert len(above.errors) == 1
    assert below.errors == above.errors
    assert below.own_errors == ()


DEMO = Path(__file__).resolve().parents[3] / "inventory/demo.yml"


def labelled(root: Path, name: str, labels: str = "") -> None:
    root.mkdir(parents=True, exist_ok=True)
    spec = DEMO.read_text().replace("host: demo", f"host: {name}")
    (root / f"{name}.yml").write_text(spec + (f"labels: {labels}\n" if labels else ""))


def test_a_label_that_no_host_carries_is_a_warning_on_its_line(tmp_path: Path) -> None:
    inventory = tmp_path / "inventory"
    labelled(inventory, "pc1", "{wave: canary, room: hall}")
    labelled(inventory / "lab", "pc2", "{room: lab}")
    policy = "rollout:\n  canary-labels:\n    wave: canry\n  by: floor\n"
    fleet(inventory, policy)
    fleet(inventory / "lab", "rollout: {failures: 1}\n")
    found = load_project(tmp_path).warnings
    assert [(each.path, each.line, each.message) for each in found] == [
        (inventory / "fleet.yml", 4, "no host carries wave=canry, so the canary is chosen by name"),
        (inventory / "fleet.yml", 5, "no host carries the label 'floor', so the waves are spread over nothing"),
    ]
    assert [each.fix for each in found] == ["did you mean `wave=canary`?", "there is `room`, `wave`"]
    fleet(inventory, policy.replace("canry", "canary").replace("floor", "room"))
    assert load_project(tmp_path).warnings == []


def test_hosts_come_in_the_order_in_which_people_count(tmp_path: Path) -> None:
    for name in ("pc10", "pc2", "pc1"):
        labelled(tmp_path / "inventory", name)
    assert [each.host for each in load_project(tmp_path).hosts] == ["pc1", "pc2", "pc10"]
