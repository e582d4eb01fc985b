"""``power-limit`` against a stand-in nvidia-smi: what it sets, what it believes, what it writes down."""

from __future__ import annotations

import ast
import importlib.machinery
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.power.bench import ADA, BLACKWELL, PATH, Bench, bench, card
from tests.unit.render.test_start_probe_source import RULES


@pytest.fixture
def machine(tmp_path: Path) -> Bench:
    made = bench(tmp_path)
    made.world(blackwell=card(), ada=card())
    made.config(("blackwell", BLACKWELL, 50), ("ada", ADA, None))
    return made


def test_a_limit_is_set_once_and_read_back(machine: Bench) -> None:
    assert machine.run()[0] == 0
    assert machine.read()["sets"] == [[BLACKWELL, 50.0]]
    seen = machine.state["cards"][BLACKWELL]
    assert (seen["wanted-w"], seen["limit-w"], seen["enforced-w"], seen["min-w"]) == (50, 50.0, 50.0, 35.0)
    assert machine.run() == (0, "")
    assert len(machine.read()["sets"]) == 1, "a limit that holds is not set again"


def test_another_writer_is_undone_and_counted(machine: Bench) -> None:
    machine.run()
    machine.change(BLACKWELL, limit=70.0)
    status, said = machine.run()
    assert status == 0
    assert "blackwell: something else changed the limit from 50 W to 70 W" in said
    assert machine.read()["cards"][BLACKWELL]["limit"] == 50.0
    assert machine.state["cards"][BLACKWELL]["changed-by-others"]["count"] == 1
    machine.change(BLACKWELL, limit=60.0)
    machine.run()
    others = machine.state["cards"][BLACKWELL]["changed-by-others"]
    assert (others["count"], others["from-w"]) == (2, 60.0)


def test_a_limit_of_an_earlier_boot_was_changed_by_nobody(machine: Bench) -> None:
    machine.run()
    machine.change(BLACKWELL, limit=70.0)
    state = machine.state | {"boot-id": "another"}
    (machine.place / "state.json").write_text(json.dumps(state))
    status, said = machine.run()
    assert (status, "something else" in said) == (0, False)
    assert machine.state["cards"][BLACKWELL]["changed-by-others"] == {}


def test_a_new_limit_in_the_spec_is_no_other_writer(machine: Bench) -> None:
    machine.run()
    machine.config(("blackwell", BLACKWELL, 60), ("ada", ADA, None))
    assert "something else" not in machine.run()[1]
    assert machine.state["cards"][BLACKWELL]["limit-w"] == 60.0


@pytest.mark.parametrize("watts", [34, 71])
def test_a_limit_outside_of_the_cards_range_is_not_tried(machine: Bench, watts: int) -> None:
    machine.config(("blackwell", BLACKWELL, watts))
    status, said = machine.run()
    assert (status, machine.read()["sets"]) == (78, [])
    assert "35 to 70 W" in said
    assert "35 to 70 W" in machine.state["cards"][BLACKWELL]["error"]


def test_all_done_is_not_believed(machine: Bench) -> None:
    """A mobile card ends with "All done." and status 0, and keeps its limit."""
    machine.change(BLACKWELL, fixed=True)
    status, said = machine.run()
    assert status == 1
    assert "Changing power management limit is not supported" in said
    assert machine.state["cards"][BLACKWELL]["limit-w"] == 70.0


def test_one_card_that_fails_keeps_no_other_from_its_limit(machine: Bench) -> None:
    machine.change(BLACKWELL, fixed=True)
    machine.config(("blackwell", BLACKWELL, 50), ("ada", ADA, 40))
    assert machine.run()[0] == 1
    assert machine.read()["cards"][ADA]["limit"] == 40.0


@pytest.mark.parametrize(
    ("fault", "words"),
    [("dead", "couldn't communicate"), ("mismatch", "version mismatch"), ("garbage", "names no card")],
)
def test_a_driver_that_does_not_answer_is_tried_later(machine: Bench, fault: str, words: str) -> None:
    machine.fault(fault)
    status, said = machine.run()
    assert status == 75
    assert words in said
    assert words in machine.state["error"]
    assert machine.read()["sets"] == []


def test_no_nvidia_smi_at_all_is_tried_later(machine: Bench) -> None:
    (machine.place / "nvidia-smi").unlink()
    assert machine.run()[0] == 75


def test_a_driver_that_hangs_is_left_after_a_while(machine: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    loader = importlib.machinery.SourceFileLoader("power_limit", str(PATH))
    spec = importlib.util.spec_from_loader("power_limit", loader)
    assert spec is not None
    program = importlib.util.module_from_spec(spec)
    loader.exec_module(program)
    monkeypatch.setattr(program, "PATIENCE_S", 0.5)
    machine.fault("hang")
    assert program.ask(str(machine.place / "nvidia-smi"), "--query-gpu=uuid")[0] == 127
    with pytest.raises(program.Problem, match="timed out"):
        program.look(str(machine.place / "nvidia-smi"))


def test_a_card_that_is_not_there(machine: Bench) -> None:
    machine.world(ada=card())
    status, said = machine.run()
    assert (status, "does not name this card" in said) == (1, True)


def test_a_card_whose_uuid_nobody_knows_waits(machine: Bench) -> None:
    machine.config(("blackwell", None, 50), ("ada", ADA, 40))
    status, said = machine.run()
    assert status == 75
    assert "UUID of blackwell" in said
    assert machine.read()["cards"][ADA]["limit"] == 40.0, "the other card does not wait"


def test_throttling_is_counted_between_two_looks(machine: Bench) -> None:
    machine.change(BLACKWELL, counters=[1000, 5, 0, 0])
    machine.run()
    machine.change(BLACKWELL, counters=[4000, 5, 7, 0])
    machine.run()
    seen = machine.state["cards"][BLACKWELL]
    assert seen["counters-us"] == {"power-cap": 4000, "software-thermal": 5, "hardware-thermal": 7, "power-brake": 0}
    assert seen["throttled-us"] == {"power-cap": 3000, "software-thermal": 0, "hardware-thermal": 7, "power-brake": 0}
    machine.change(BLACKWELL, counters=[10, 0, 0, 0])
    machine.run()
    assert machine.state["cards"][BLACKWELL]["throttled-us"]["power-cap"] == 10, "the driver was loaded anew"


def test_an_older_driver_counts_nothing_and_keeps_its_limit(machine: Bench) -> None:
    machine.fault("old")
    assert machine.run()[0] == 0
    assert machine.state["cards"][BLACKWELL]["counters-us"] == {}


def test_what_a_card_does_not_tell_is_null(machine: Bench) -> None:
    machine.change(ADA, limit=None, min=None, max=None, default=None)
    assert machine.run()[0] == 0
    seen = machine.state["cards"][ADA]
    assert [seen[key] for key in ("limit-w", "enforced-w", "min-w", "max-w", "default-w")] == [None] * 5


def test_a_limit_that_the_spec_dropped_is_given_back(machine: Bench) -> None:
    machine.run()
    machine.config(("blackwell", BLACKWELL, None))
    assert machine.run()[0] == 0
    assert machine.read()["cards"][BLACKWELL]["limit"] == 70.0
    machine.run()
    assert len(machine.read()["sets"]) == 2, "and left alone from then on"


def test_release_gives_defaults_back(machine: Bench) -> None:
    machine.run()
    status, said = machine.run("release")
    assert (status, "back to its default of 70 W" in said) == (0, True)
    assert machine.read()["cards"][BLACKWELL]["limit"] == 70.0


@pytest.mark.parametrize(
    "config",
    [
        "",
        "[]",
        '{"schema": 2, "cards": []}',
        '{"schema": 1, "cards": [{"name": "a", "uuid": "GPU-1; reboot", "watts": 5}]}',
        '{"schema": 1, "cards": [{"name": "a", "uuid": null, "watts": true}]}',
        '{"schema": 1, "cards": [{"name": "a", "uuid": null, "watts": 9999}]}',
    ],
)
def test_a_broken_configuration_is_refused(machine: Bench, config: str) -> None:
    (machine.place / "power.json").write_text(config)
    assert machine.run()[0] == 78
    assert machine.read()["sets"] == []


@pytest.mark.parametrize("state", ["", "[]", '{"cards": 7, "boot-id": 5}', '{"cards": {"GPU-x": 3}}'])
def test_a_damaged_state_is_as_good_as_none(machine: Bench, state: str) -> None:
    (machine.place / "state.json").write_text(state)
    assert machine.run()[0] == 0
    assert machine.state["cards"][BLACKWELL]["limit-w"] == 50.0


def test_ruff_finds_nothing_in_the_program() -> None:
    ruff = str(Path(sys.executable).parent / "ruff")
    command = [ruff, "check", "--isolated", "--line-length=120", f"--select={RULES}", "--ignore=N818"]
    done = subprocess.run(
        [*command, "--stdin-filename=power_limit.py", "-"],
        input=PATH.read_text(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_the_program_needs_the_standard_library_alone() -> None:
    tree: Any = ast.parse(PATH.read_text())
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert imported
    assert imported <= set(sys.stdlib_module_names)
    assert PATH.read_text().startswith("#!/usr/bin/python3 -IBS\n")
