"""UUIDs that the spec leaves out come from the look and are pinned by the record.

No GPU is here: the cards of the observations are composed after sysfs and the driver's own files in /proc, as
``rig_observe`` reads them (tests/unit/observe/test_observe_system.py).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from llamarig.compare import compare, learn
from llamarig.compare.load import wanted_from_json
from llamarig.converge.decide import decide
from llamarig.render import wanted_state
from llamarig.render.wanted import Wanted
from llamarig.spec.host import HostSpec
from tests.golden.cases import HERE, plan_of, spec_of
from tests.support.compare.cases import observation
from tests.support.compare.cases import wanted_state as cpu_state

ROOT = Path(__file__).resolve().parents[3]
ADA = "GPU-66666666-7777-8888-9999-aaaaaaaaaaaa"
BLACKWELL = "GPU-01234567-89ab-cdef-0123-456789abcdef"
OTHER = "GPU-ffffffff-7777-8888-9999-aaaaaaaaaaaa"
PLACES = {"blackwell": "0000:01:00.0", "ada": "0000:02:00.0"}


def twin(**uuids: str | None) -> Wanted:
    """The wanted state of the host with two cards, with these UUIDs in its spec, cut down to what is about cards."""
    spec = spec_of("twin")
    cards = {name: card.model_copy(update={"uuid": uuids.get(name)}) for name, card in spec.gpus.items()}
    changed: HostSpec = spec.model_copy(update={"gpus": cards})
    return replace(
        wanted_state(changed, plan_of(changed), HERE),
        release=cpu_state().release,
        models=(),
        credentials=(),
        power=None,
    )


OPEN, NAMED = twin(blackwell=BLACKWELL), twin(blackwell=BLACKWELL, ada=ADA)


def seen(wanted: Wanted = NAMED, recorded: dict[str, str] | None = None, **uuids: str | None) -> dict[str, Any]:
    """A host that is as ``wanted``, with these cards in the two places."""
    told = observation(wanted)
    cards = {"blackwell": BLACKWELL, "ada": ADA} | uuids
    told["gpus"] = [
        {"bus-id": PLACES[name], "device": "0x2bb1"} | ({"uuid": uuid} if uuid else {}) for name, uuid in cards.items()
    ]
    if recorded is not None:
        told["record"]["gpus"] = recorded
    return told


def test_what_was_learned_is_what_a_spec_with_the_uuid_renders() -> None:
    assert "unlearned:ada" in json.dumps(OPEN.to_json())
    assert learn(OPEN, seen()) == NAMED
    assert wanted_from_json(NAMED.to_json()) == NAMED


def test_a_card_that_names_nothing_but_itself_is_learned_as_the_services_own() -> None:
    found = learn(twin(), seen())
    assert found == NAMED
    assert {service.gpu_uuid for service in found.services if service.backend == "cuda"} <= {BLACKWELL, ADA}


def test_a_host_that_has_learned_has_nothing_to_do() -> None:
    told = seen(recorded={"blackwell": BLACKWELL, "ada": ADA})
    assert compare(learn(OPEN, told), told) == []
    assert decide(OPEN.to_json(), told).actions == ()


def test_what_was_learned_and_not_written_down_yet_is_recorded() -> None:
    told = seen(recorded={"blackwell": BLACKWELL})
    [action] = compare(learn(OPEN, told), told)
    assert (action.kind, action.reason) == ("record", f"does not name {ADA} as card ada")


def test_a_driver_that_does_not_run_leaves_what_is_recorded() -> None:
    assert learn(OPEN, seen(recorded={"ada": ADA}, ada=None, blackwell=None)) == NAMED


def test_what_nobody_knows_stays_open_and_sees_no_card() -> None:
    assert learn(OPEN, seen(recorded={}, ada=None)) is OPEN
    wanted = learn(twin(), seen(recorded={}, ada=None, blackwell=None))
    assert {service.gpu_uuid for service in wanted.services} == {None}


def test_a_host_without_cards_is_left_as_it_is() -> None:
    wanted = cpu_state()
    told = observation(wanted) | {"gpus": [{"bus-id": "0000:01:00.0", "uuid": ADA}]}
    assert learn(wanted, told) is wanted
    assert decide(wanted.to_json(), told).learned is None


def test_the_record_that_was_edited_is_not_believed() -> None:
    told = seen(recorded={"ada": OTHER}) | {"record-state": "edited"}
    assert learn(OPEN, told) == NAMED
    assert [action.kind for action in compare(learn(OPEN, told), told)] == ["record"]


@pytest.mark.parametrize(
    "gpus",
    [
        None,
        "cards",
        ["card", 3, None, []],
        [{"bus-id": PLACES["ada"]}],
        [
            {"bus-id": PLACES["ada"], "uuid": uuid}
            for uuid in ("GPU-x", ADA.upper(), f"{ADA}\nEnvironment=X=1", 7, None)
        ],
        [{"bus-id": ["0000:02:00.0"], "uuid": ADA}, {"uuid": ADA, "bus-id": None}, {"uuid": ADA, "bus-id": ""}],
    ],
)
def test_nothing_malformed_is_learned(gpus: Any) -> None:
    assert learn(OPEN, seen(recorded={}) | {"gpus": gpus}) is OPEN


def test_the_play_goes_on_with_what_was_learned_and_records_it(tmp_path: Path) -> None:
    """The very tasks of site.yml and of the record role, run by Ansible."""
    [play] = yaml.safe_load((ROOT / "playbooks/site.yml").read_text())
    names = ("Decide what is to be done", "Name the cards by the UUIDs that the driver tells")
    tasks = [task for task in play["tasks"] if task["name"] in names]
    assert [task["name"] for task in tasks] == list(names)
    tasks_of_record = yaml.safe_load((ROOT / "roles/record/tasks/configure.yml").read_text())
    [record] = [task for task in tasks_of_record if "rig_record" in task]
    said = {"gpus": record["rig_record"]["gpus"], "wanted": "{{ record_wanted }}"}
    tasks += [
        {"name": "Say it", "ansible.builtin.copy": {"content": "{{ said | to_json }}", "dest": str(tmp_path / "said")}}
    ]
    tasks[-1]["vars"] = {"said": said, "record_wanted": "{{ llamarig_wanted }}"}
    book = tmp_path / "book.yml"
    told = seen(recorded={})
    given = {"llamarig_full": False, "llamarig_observed": told}
    (tmp_path / "vars.json").write_text(json.dumps(given))
    book.write_text(
        yaml.safe_dump([{"hosts": "all", "gather_facts": False, "tasks": tasks, "vars_files": ["vars.json"]}])
    )
    local = {"ansible_connection": "local", "ansible_python_interpreter": "/usr/bin/python3"}
    hosts = {"here": {**local, "llamarig_wanted": OPEN.to_json()}}
    (tmp_path / "x.llamarig.json").write_text(json.dumps({"prepared": hosts}))
    command = [sys.executable, "-m", "ansible", "playbook", "-i", str(tmp_path / "x.llamarig.json"), str(book)]
    environment = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    written = json.loads((tmp_path / "said").read_text())
    assert written["gpus"] == {"blackwell": BLACKWELL, "ada": ADA}
    assert written["wanted"] == NAMED.to_json()
