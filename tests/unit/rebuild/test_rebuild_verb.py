"""``rebuild`` from the command line, with stand-ins for the runs of Ansible."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llamarig.cli import main as command
from llamarig.compare.action import Action
from llamarig.converge import apply as work
from llamarig.converge import rebuild as job
from llamarig.converge.decide import Decision
from llamarig.converge.run import HostOutcome, Run
from llamarig.errors import ExitCode, RigError

ROOT = Path(__file__).resolve().parents[3]
NEEDED = {"kernel": "new", "running": "old", "needed": ["kernel old runs and new is installed"], "why": []}


class World:
    """What Ansible would say: the verdicts in turn, and what the play of the reboot ends in."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, verdicts: list[str]) -> None:
        self.verdicts = verdicts
        self.plays: list[dict[str, Any]] = []
        self.applied = 0
        self.failure: dict[str, Any] | None = None
        self.actions: tuple[Action, ...] = ()
        self.apply_error: RigError | None = None
        monkeypatch.setattr(work, "look", self.look)
        monkeypatch.setattr(work, "converge", self.converge)
        monkeypatch.setattr(job, "table", lambda _host: [])
        monkeypatch.setattr(job, "run_playbook", self.play)

    def look(self, hosts: list[work.HostApply], _private: Path, **_named: Any) -> None:
        for host in hosts:
            host.decision = Decision(self.actions, {}, ())

    def converge(self, hosts: list[work.HostApply], *_given: Any) -> None:
        self.applied += 1
        for host in hosts:
            host.converged, host.error = True, self.apply_error

    def play(self, name: str, hosts: Any, _private: Path, **named: Any) -> Run:
        assert name == "rebuild"
        self.plays.append(named["extra"])
        outcome = HostOutcome(ran=True)
        if named["extra"].get("llamarig_reboot_look"):
            verdict = self.verdicts.pop(0)
            outcome.results["rig_reboot"] = {"reboot": {**NEEDED, "verdict": verdict, "why": ["anna is logged in"]}}
        elif self.failure is not None:
            outcome.failures.append(self.failure)
        else:
            outcome.results["rig_reboot"] = {"differs": []}
        return Run(0, dict.fromkeys(hosts, outcome), "")

    @property
    def reboots(self) -> int:
        return sum(1 for extra in self.plays if not extra.get("llamarig_reboot_look"))


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    def start(*words: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["llamarig", "-C", str(ROOT), "rebuild", "demo", *words])
        with pytest.raises(SystemExit) as ended:
            command.main()
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out + said.err

    return start


def test_a_host_that_needs_nothing(monkeypatch: pytest.MonkeyPatch, run: Callable[..., tuple[int, str]]) -> None:
    world = World(monkeypatch, ["not-needed"])
    status, said = run()
    assert (status, world.reboots, world.applied) == (0, 0, 0)
    assert "nothing changed" in said
    assert "no reboot is needed" in said


def test_check_touches_nothing(monkeypatch: pytest.MonkeyPatch, run: Callable[..., tuple[int, str]]) -> None:
    world = World(monkeypatch, ["now"])
    status, said = run("--check")
    assert (status, world.reboots, world.applied) == (1, 0, 0)
    assert "would reboot now" in said


def test_an_allowed_reboot_is_made_and_proven(
    monkeypatch: pytest.MonkeyPatch, run: Callable[..., tuple[int, str]]
) -> None:
    world = World(monkeypatch, ["now", "not-needed"])
    status, said = run()
    assert (status, world.reboots) == (0, 1)
    assert "kernel, module, library and record agree" in said


@pytest.mark.parametrize("verdict", ["refused", "waits", "ask"])
def test_a_reboot_that_is_not_made_is_a_finding_with_its_reason(
    monkeypatch: pytest.MonkeyPatch, run: Callable[..., tuple[int, str]], verdict: str
) -> None:
    world = World(monkeypatch, [verdict])
    status, said = run()
    assert (status, world.reboots) == (int(ExitCode.FINDING), 0)
    assert "anna is logged in" in said


def test_yes_answers_the_question(monkeypatch: pytest.MonkeyPatch, run: Callable[..., tuple[int, str]]) -> None:
    world = World(monkeypatch, ["ask", "not-needed"])
    status, _ = run("--yes")
    assert (status, world.reboots) == (0, 1)
    assert [extra["llamarig_reboot_allowed"] for extra in world.plays if "llamarig_reboot_allowed" in extra] == [True]


@pytest.mark.parametrize("verdict", ["refused", "waits"])
def test_yes_allows_nothing_that_is_refused_or_waits(
    monkeypatch: pytest.MonkeyPatch, run: Callable[..., tuple[int, str]], verdict: str
) -> None:
    world = World(monkeypatch, [verdict])
    assert run("--yes")[0] == int(ExitCode.FINDING)
    assert world.reboots == 0


def test_a_host_that_does_not_come_back_is_a_failed_host(
    monkeypatch: pytest.MonkeyPatch, run: Callable[..., tuple[int, str]]
) -> None:
    world = World(monkeypatch, ["now"])
    world.failure = {
        "action": "fail",
        "task": "Fail when the host did not come back",
        "status": "failed",
        "result": {"msg": "the host did not come back within 900 s after its reboot\nfix: look at its console"},
    }
    status, said = run()
    assert status == int(ExitCode.HOST_FAILED)
    assert "did not come back" in said
    assert "look at its console" in said


def test_an_apply_that_ends_for_the_reboot_goes_on_after_it(
    monkeypatch: pytest.MonkeyPatch, run: Callable[..., tuple[int, str]]
) -> None:
    world = World(monkeypatch, ["now", "not-needed"])
    world.actions = (Action("driver", "reboot", "module 570 is loaded, wanted 610"),)
    world.apply_error = RigError("A reboot is needed before the driver is the one that the spec names.", "demo")
    status, _ = run("--yes")
    assert (status, world.reboots, world.applied) == (0, 1, 2)


def test_an_apply_that_failed_for_another_reason_reboots_nothing(
    monkeypatch: pytest.MonkeyPatch, run: Callable[..., tuple[int, str]]
) -> None:
    world = World(monkeypatch, [])
    world.actions = (Action("driver", "reboot", "module 570 is loaded"), Action("driver", "x", "is not installed"))
    world.apply_error = RigError("apt has failed", "demo", code=ExitCode.HOST_FAILED)
    status, said = run("--yes")
    assert (status, world.reboots) == (int(ExitCode.HOST_FAILED), 0)
    assert "apt has failed" in said


def test_the_documented_json(monkeypatch: pytest.MonkeyPatch, run: Callable[..., tuple[int, str]]) -> None:
    World(monkeypatch, ["not-needed"])
    (host,) = json.loads(run("--json")[1])["hosts"]
    assert host["reboot"]["verdict"] == "not-needed"
    assert (host["changes"], host["rebooted"], host["ok"]) == ([], False, True)
