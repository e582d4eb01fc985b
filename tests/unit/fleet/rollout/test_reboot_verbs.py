"""``rollout start`` and ``resume`` with ``--reboot``, and what the layer below makes of Ansible's answers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from llamarig.cli import main
from llamarig.compare.action import Action
from llamarig.converge import apply as work
from llamarig.converge import rebuild
from llamarig.converge.decide import Decision
from llamarig.converge.run import HostOutcome, Run
from llamarig.fleet.rollout import places, session
from llamarig.fleet.rollout.ansible import AnsibleHands, _result, _seen
from llamarig.fleet.rollout.session import Session, Start
from llamarig.fleet.rollout.state import State
from tests.unit.fleet.rollout.stand_in import Fleet, Machinery, again

ROOT = Path(__file__).resolve().parents[4]
NEEDED = "module 550.163.01 is loaded, wanted 610.57.04"
ANSWER = {"verdict": "ask", "kernel": "6", "running": "6", "needed": [NEEDED], "why": ["kim is logged in"]}


def described(root: Path, reboot: str, kind: str = "rtx-4090") -> Path:
    """A project with one host, on which a driver is managed unless it is the demo's."""
    (root / "inventory").mkdir()
    (root / "headers").symlink_to(ROOT / "headers")
    spec = yaml.safe_load((ROOT / "inventory" / f"{kind}.yml").read_text())
    given = {"host": "a", "connection": {"address": "192.0.2.1"}, "maintenance": {"reboot": reboot}}
    (root / "inventory" / "a.yml").write_text(yaml.safe_dump(spec | given))
    return root


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch) -> Fleet:
    """A fleet that is none, for whatever is begun or gone on with."""
    hosts = Fleet({"a": Machinery(module="1", installed="1", verdict="ask")}, driver="2")
    begin, go_on = session.start, session.resume

    def stands_in(given: Session) -> Session:
        return replace(given, make_hands=lambda _r, _p, _s: hosts, gate=session.no_gate)

    def start(given: Session, wish: Start) -> State:
        return begin(stands_in(given), wish)

    def resume(given: Session, name: str | None, *, reboot: bool) -> State:
        return go_on(stands_in(given), name, reboot=reboot)

    monkeypatch.setattr(session, "start", start)
    monkeypatch.setattr(session, "resume", resume)
    return hosts


def rig(root: Path, *arguments: str) -> int:
    return main._run(["-C", str(root), "rollout", *arguments])


def test_start_reboots_where_it_is_asked_to(tmp_path: Path, fleet: Fleet, capsys: pytest.CaptureFixture[str]) -> None:
    project = described(tmp_path, "ask")
    assert rig(project, "start", "--all", "--yes", "--reboot", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["hosts"]["a"]["phase"], told["hosts"]["a"]["reboot"]) == ("done", "made")
    assert fleet.hosts["a"].rebooted == 1


def test_without_it_the_host_waits_and_resume_may_ask(
    tmp_path: Path, fleet: Fleet, capsys: pytest.CaptureFixture[str]
) -> None:
    project = described(tmp_path, "ask")
    assert rig(project, "start", "--all", "--yes") == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "incomplete: a waits for a reboot, and no host has proven the change yet" in said
    assert "resume with --reboot" in said
    assert rig(project, "resume", "--yes") == 1
    assert fleet.hosts["a"].rebooted == 0
    assert rig(project, "resume", "--yes", "--reboot") == 0
    assert fleet.hosts["a"].rebooted == 1


@pytest.mark.parametrize(
    ("policy", "options", "words"),
    [
        ("ask", [], ""),
        ("ask", ["--reboot"], ", and hosts that need it are rebooted"),
        ("never", ["--reboot"], ""),
        ("now", [], ", and hosts with `maintenance.reboot: now` that need it are rebooted"),
    ],
)
@pytest.mark.usefixtures("fleet")
def test_the_question_says_who_may_be_rebooted(
    tmp_path: Path, policy: str, options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert rig(described(tmp_path, policy), "start", "--all", *options) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert f"services that change are restarted{words}" in said
    assert ("rebooted" in said) == bool(words)


@pytest.mark.usefixtures("fleet")
def test_where_no_driver_is_managed_no_question_speaks_of_reboots(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert rig(described(tmp_path, "now", "demo"), "start", "--all", "--reboot") == 2
    assert "rebooted" not in capsys.readouterr().err


def test_the_question_of_resume_says_so_too(tmp_path: Path, fleet: Fleet, capsys: pytest.CaptureFixture[str]) -> None:
    project = described(tmp_path, "ask")
    rig(project, "start", "--all", "--yes")
    for options, words in (([], ""), (["--reboot"], ", and hosts that need it are rebooted")):
        capsys.readouterr()
        assert rig(project, "resume", *options) == 2
        said = " ".join(capsys.readouterr().err.split())
        assert f"services that change are restarted{words}" in said
        assert ("rebooted" in said) == bool(words)
    assert fleet.hosts["a"].rebooted == 0


@pytest.mark.parametrize(
    ("last", "words"),
    [
        ({"event": "aborted", "reason": "asked for"}, "is over (aborted), and reboots nobody any more"),
        ({"event": "rollback-started"}, "is on its way back, and reboots nobody any more"),
        ({"event": "paused"}, ""),
    ],
)
def test_resume_says_where_asking_for_reboots_does_nothing(
    tmp_path: Path, fleet: Fleet, capsys: pytest.CaptureFixture[str], last: dict[str, Any], words: str
) -> None:
    project = described(tmp_path, "ask")
    rig(project, "start", "--all", "--yes")
    log = again(places.find(project, None))
    log.tell(last)
    log.journal.close()
    for options in ([], ["--reboot"]):
        capsys.readouterr()
        assert rig(project, "resume", *options) == 2, "nobody is there to answer the question"
        said = " ".join(capsys.readouterr().err.split())
        assert ("--reboot does nothing here" in said) == bool(options and words)
        assert ("llamarig rebuild HOST" in said) == bool(options and words)
    assert words in said
    assert fleet.hosts["a"].rebooted == 0


def applied() -> work.HostApply:
    return work.HostApply("a", {"llamarig_wanted": {"release": {"id": "x"}, "services": []}}, {"schema": 1})


@pytest.mark.parametrize(
    ("subjects", "waits"),
    [(["reboot"], NEEDED), (["reboot", "secure-boot"], ""), (["reboot", "libcuda1"], ""), ([], "")],
)
def test_a_look_says_whether_the_driver_lacks_a_reboot_alone(subjects: list[str], waits: str) -> None:
    host = applied()
    actions = [Action("driver", subject, NEEDED if subject == "reboot" else "is not so") for subject in subjects]
    host.decision = Decision((Action("file", "/etc/x", "differs"), *actions), {}, ())
    assert _seen(host).waits == waits


@pytest.mark.parametrize(
    ("role", "action", "at_driver"),
    [("nvidia_driver", "fail", True), ("nvidia_driver", "rig_driver", False), ("services", "fail", False)],
)
def test_the_driver_s_own_check_is_told_from_other_failures(role: str, action: str, at_driver: bool) -> None:
    failure = {"status": "failed", "role": role, "action": action, "task": "a task", "result": {"msg": "no"}}
    assert _result("a", Run(2, {"a": HostOutcome(failures=[failure], ran=True)}), 1.0).at_driver == at_driver


def test_the_role_ends_an_apply_for_the_reboot_as_it_is_told_here() -> None:
    tasks = yaml.safe_load((ROOT / "roles/nvidia_driver/tasks/verify.yml").read_text())
    (last,) = [task for task in tasks if task["name"] == "End here until the host was rebooted"]
    assert "ansible.builtin.fail" in last


@pytest.fixture
def hands(tmp_path: Path) -> AnsibleHands:
    made = AnsibleHands(tmp_path, tmp_path / "r", tmp_path, work.Options(break_lock=True), lambda _event: None)
    made._hosts["a"] = applied()
    made._hosts["a"].error = rebuild.RigError("A reboot is needed before the driver is the one that the spec names.")
    return made


def plays(monkeypatch: pytest.MonkeyPatch, outcome: HostOutcome) -> list[dict[str, Any]]:
    """The extra variables of each play of the reboot, which ends so."""
    given: list[dict[str, Any]] = []

    def play(name: str, hosts: Any, _private: Path, **named: Any) -> Run:
        assert (name, list(hosts)) == ("rebuild", ["a"])
        given.append(named["extra"])
        return Run(0, {"a": outcome})

    monkeypatch.setattr(rebuild, "run_playbook", play)
    return given


def test_asking_touches_nothing_and_gives_the_decision(monkeypatch: pytest.MonkeyPatch, hands: AnsibleHands) -> None:
    given = plays(monkeypatch, HostOutcome(ran=True, results={"rig_reboot": {"reboot": ANSWER}}))
    found = hands.may_reboot(["a"])["a"]
    assert given == [{"llamarig_reboot_look": True}]
    assert (found.verdict, found.needed, found.why) == ("ask", (NEEDED,), ("kim is logged in",))
    assert (found.made, found.result.error) == (False, None)


def test_a_reboot_that_came_true(monkeypatch: pytest.MonkeyPatch, hands: AnsibleHands) -> None:
    given = plays(monkeypatch, HostOutcome(ran=True, results={"rig_reboot": {"differs": []}}))
    found = hands.reboot(["a"])["a"]
    assert given == [{"llamarig_reboot_allowed": True, "llamarig_break_lock": True}]
    assert (found.made, found.result.error, found.result.reached) == (True, None, True)


def test_a_host_that_decided_otherwise_was_not_rebooted(monkeypatch: pytest.MonkeyPatch, hands: AnsibleHands) -> None:
    waits = {**ANSWER, "verdict": "waits"}
    plays(monkeypatch, HostOutcome(ran=True, results={"rig_reboot": {"reboot": waits}}))
    found = hands.reboot(["a"])["a"]
    assert (found.verdict, found.made, found.result.error) == ("waits", False, None)


@pytest.mark.parametrize(
    ("status", "action", "left"),
    [
        ("failed", "fail", (True, False)),
        ("unreachable", "rig_observe", (False, False)),
        ("failed", "rig_lock", (True, True)),
    ],
)
def test_a_reboot_that_failed_is_told_as_any_other_change(
    monkeypatch: pytest.MonkeyPatch, hands: AnsibleHands, status: str, action: str, left: tuple[bool, bool]
) -> None:
    failure = {"status": status, "action": action, "task": "a task", "result": {"msg": "no"}}
    plays(monkeypatch, HostOutcome(ran=True, failures=[failure]))
    result = hands.reboot(["a"])["a"].result
    assert result.error is not None
    assert (result.reached, result.untouched) == left


def test_a_host_of_which_ansible_said_nothing_is_an_error(monkeypatch: pytest.MonkeyPatch, hands: AnsibleHands) -> None:
    plays(monkeypatch, HostOutcome())
    assert hands.may_reboot(["a"])["a"].result.error is not None
    assert hands.reboot(["a"])["a"].result.error is not None
