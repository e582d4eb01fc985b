"""Reboots within a rollout: who is rebooted, who is left for later, and what a canary that waits keeps others from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from llamarig.errors import ExitCode
from llamarig.fleet.rollout.hands import Reboot, Result
from llamarig.fleet.rollout.machine import Machine
from llamarig.fleet.rollout.session import exit_code
from llamarig.fleet.rollout.state import State
from tests.unit.fleet.rollout.stand_in import (
    Fleet,
    Killed,
    Machinery,
    again,
    begin,
    forward,
    no_gate,
    phases,
    trouble,
)

NEW, OLD = "610.57.04", "550.163.01"
NEEDED = f"module {OLD} is loaded, wanted {NEW}"


def host(**given: Any) -> Machinery:
    """One whose driver is managed, and not the wanted one."""
    return Machinery(module=OLD, installed=OLD, **given)


def fleet(count: int, **other: Machinery) -> Fleet:
    return Fleet({f"h{number}": other.get(f"h{number}", host()) for number in range(count)}, driver=NEW)


def go_on(place: Path, hosts: Fleet, gate: Callable[[Sequence[str]], dict[str, str]] = no_gate) -> State:
    """``resume`` without its lock."""
    log = again(place)
    log.tell({"event": "resumed"})
    return forward(log, hosts, place, gate)


def called(hosts: Fleet, *kinds: str) -> list[tuple[str, tuple[str, ...]]]:
    return [(what, names) for what, names in hosts.calls if what in kinds]


def test_a_host_that_may_is_rebooted_in_its_turn_and_proven_like_any_other(tmp_path: Path) -> None:
    hosts = fleet(3)
    told = forward(begin(tmp_path / "r", hosts, [1, 2]), hosts, tmp_path / "r")
    assert called(hosts, "apply", "may_reboot", "reboot") == [
        ("apply", ("h0",)),
        ("may_reboot", ("h0",)),
        ("reboot", ("h0",)),
        ("apply", ("h0",)),
        ("apply", ("h1", "h2")),
        ("may_reboot", ("h1", "h2")),
        ("reboot", ("h1", "h2")),
        ("apply", ("h1", "h2")),
    ]
    assert (told.status, exit_code(told)) == ("done", ExitCode.OK)
    assert phases(told) == dict.fromkeys(("h0", "h1", "h2"), "done")
    assert {(each.module, each.release, each.rebooted) for each in hosts.hosts.values()} == {(NEW, "new", 1)}
    assert {(each.reboot, each.reason, each.between) for each in told.hosts.values()} == {("made", "", False)}
    assert told.hosts["h0"].checks == {"passed": 2, "of": 2, "failed": []}
    assert hosts.proven == ["h0", "h1", "h2"], "what came up is proven, whatever is left to do"


def test_where_no_reboot_is_needed_nobody_is_asked_about_one(tmp_path: Path) -> None:
    plain = Fleet({"h0": Machinery(module=NEW, installed=NEW), "h1": Machinery()}, driver=NEW)
    told = forward(begin(tmp_path / "r", plain, [1, 1]), plain, tmp_path / "r")
    assert [what for what, _ in plain.calls] == ["load", "look", "load", "apply", "load", "apply"]
    assert {each.reboot for each in told.hosts.values()} == {""}
    assert told.status == "done"


def test_the_journal_says_it_before_the_host_goes_down(tmp_path: Path) -> None:
    hosts, seen = fleet(1), []
    hosts.on_reboot = lambda: seen.append(State.read(tmp_path / "r").hosts["h0"])
    forward(begin(tmp_path / "r", hosts, [1]), hosts, tmp_path / "r")
    assert [(each.phase, each.reboot, each.between, each.reason) for each in seen] == [
        ("rebooting", "begun", True, NEEDED)
    ]


@pytest.mark.parametrize(
    ("verdict", "why", "words"),
    [
        ("ask", (), "`maintenance.reboot` is `ask`: resume with --reboot"),
        ("waits", ("kim is logged in",), "and not now: kim is logged in; resume later"),
        ("waits", ("outside its maintenance window, which opens Sat",), "which opens Sat; resume later"),
        (
            "refused",
            ("maintenance.reboot is `never`",),
            "refused: maintenance.reboot is `never`; once that is settled",
        ),
        ("refused", ("the module for kernel 7 is only added",), "refused: the module for kernel 7 is only added"),
        ("error", (), "nobody knows whether it may be rebooted: rig_idle has failed"),
    ],
)
def test_a_canary_that_waits_for_its_reboot_is_no_failure_and_nobody_else_is_touched(
    tmp_path: Path, verdict: str, why: tuple[str, ...], words: str
) -> None:
    hosts = fleet(3, h0=host(verdict=verdict, why=why))
    told = forward(begin(tmp_path / "r", hosts, [1, 2]), hosts, tmp_path / "r")
    assert hosts.touched() == ["h0"]
    assert called(hosts, "reboot") == []
    first = told.hosts["h0"]
    assert (first.phase, first.reboot, first.between, first.failed) == ("deferred", "waits", True, False)
    assert words in first.reason
    assert (NEEDED in first.reason) == (verdict != "error")
    assert {told.hosts[name].phase for name in ("h1", "h2")} == {"pending"}
    assert (told.status, told.reason) == (
        "incomplete",
        "h0 waits for a reboot, and no host has proven the change yet",
    )
    assert (told.failures, exit_code(told)) == (0, ExitCode.FINDING)


def test_a_host_that_waits_behind_a_proven_canary_holds_up_no_other(tmp_path: Path) -> None:
    hosts = fleet(4, h1=host(verdict="waits", why=("kim is logged in",)))
    told = forward(begin(tmp_path / "r", hosts, [1, 2, 1]), hosts, tmp_path / "r")
    assert phases(told) == {"h0": "done", "h1": "deferred", "h2": "done", "h3": "done"}
    assert called(hosts, "reboot") == [("reboot", ("h0",)), ("reboot", ("h2",)), ("reboot", ("h3",))]
    assert (told.status, told.reason, exit_code(told)) == ("incomplete", "", ExitCode.FINDING)


def test_with_no_canary_too_a_wave_that_waits_is_the_last(tmp_path: Path) -> None:
    hosts = fleet(4)
    for each in hosts.hosts.values():
        each.verdict = "ask"
    told = forward(begin(tmp_path / "r", hosts, [2, 2], canary=0), hosts, tmp_path / "r")
    assert hosts.touched() == ["h0", "h1"]
    assert told.status == "incomplete"


def test_resume_takes_up_first_what_waits_and_does_not_apply_it_for_nothing(tmp_path: Path) -> None:
    hosts = fleet(3, h1=host(verdict="waits", why=("kim is logged in",)))
    place = tmp_path / "r"
    forward(begin(place, hosts, [1, 1, 1]), hosts, place, lambda names: {"h0": "in use"} if "h0" in names else {})
    assert hosts.touched() == ["h1"]
    hosts.hosts["h1"].verdict = "now"
    hosts.calls.clear()
    told = go_on(place, hosts)
    assert called(hosts, "may_reboot", "reboot", "apply")[:3] == [
        ("may_reboot", ("h1",)),
        ("reboot", ("h1",)),
        ("apply", ("h1",)),
    ]
    assert told.status == "done"
    assert phases(told) == dict.fromkeys(("h0", "h1", "h2"), "done")


def test_what_still_waits_still_holds_up_the_others(tmp_path: Path) -> None:
    hosts = fleet(3, h0=host(verdict="ask"))
    place = tmp_path / "r"
    forward(begin(place, hosts, [1, 2]), hosts, place)
    told = go_on(place, hosts)
    assert (hosts.hosts["h0"].touched, hosts.touched()) == (1, ["h0"])
    assert told.status == "incomplete"
    assert told.hosts["h0"].between


def test_a_reboot_of_which_nothing_is_said_has_no_empty_reason(tmp_path: Path) -> None:
    hosts = fleet(1)
    hosts.may_reboot = lambda names: dict.fromkeys(names, Reboot())  # type: ignore[method-assign]  # says nothing
    told = forward(begin(tmp_path / "r", hosts, [1]), hosts, tmp_path / "r")
    assert told.hosts["h0"].reason == "a reboot is needed, and was not made; resume"


def test_asked_for_at_the_start_it_is_made_where_it_would_be_asked_about(tmp_path: Path) -> None:
    hosts = fleet(2)
    for each in hosts.hosts.values():
        each.verdict = "ask"
    gates: list[tuple[str, ...]] = []

    def gate(names: Sequence[str]) -> dict[str, str]:
        gates.append(tuple(names))
        return {}

    told = forward(begin(tmp_path / "r", hosts, [1, 1], reboot=True), hosts, tmp_path / "r", gate)
    assert told.status == "done"
    assert gates == [("h0",), ("h0",), ("h1",), ("h1",)], "before the change, and again before the reboot"


def test_who_came_meanwhile_is_not_thrown_out_by_an_answer_from_the_start(tmp_path: Path) -> None:
    hosts = fleet(2, h0=host(verdict="ask"))
    answers = iter([{}, {"h0": "logged in: kim"}])
    told = forward(begin(tmp_path / "r", hosts, [1, 1], reboot=True), hosts, tmp_path / "r", lambda _n: next(answers))
    assert hosts.hosts["h0"].rebooted == 0
    assert "not now: logged in: kim; resume later" in told.hosts["h0"].reason
    assert told.status == "incomplete"


@pytest.mark.parametrize("verdict", ["waits", "refused", "error"])
def test_asking_for_reboots_overrules_nothing_else(tmp_path: Path, verdict: str) -> None:
    hosts = fleet(2, h0=host(verdict=verdict, why=("kim is logged in",)))
    forward(begin(tmp_path / "r", hosts, [1, 1], reboot=True), hosts, tmp_path / "r")
    assert called(hosts, "reboot") == []


def test_a_host_that_somebody_came_to_at_the_last_moment_is_left_up(tmp_path: Path) -> None:
    hosts = fleet(2)

    def comes() -> None:
        hosts.hosts["h0"].verdict, hosts.hosts["h0"].why = "waits", ("kim is logged in",)

    hosts.on_reboot = comes
    told = forward(begin(tmp_path / "r", hosts, [1, 1]), hosts, tmp_path / "r")
    assert (hosts.hosts["h0"].rebooted, told.hosts["h0"].reboot, told.hosts["h0"].phase) == (0, "waits", "deferred")
    assert "kim is logged in" in told.hosts["h0"].reason
    assert told.status == "incomplete"


def test_a_canary_that_does_not_come_back_stops_it(tmp_path: Path) -> None:
    hosts = fleet(3, h0=host(boots="not"))
    place = tmp_path / "r"
    told = forward(begin(place, hosts, [1, 2]), hosts, place)
    assert hosts.touched() == ["h0"]
    assert (told.hosts["h0"].phase, told.hosts["h0"].between) == ("unreachable", True)
    assert "did not come back" in told.hosts["h0"].reason
    assert told.status == "stopped"
    assert "h0 was lost while it was changed" in told.reason


def test_one_behind_a_proven_canary_that_does_not_come_back_is_looked_at_by_resume(tmp_path: Path) -> None:
    hosts = fleet(3, h1=host(boots="not"))
    place = tmp_path / "r"
    told = forward(begin(place, hosts, [1, 2]), hosts, place)
    assert phases(told) == {"h0": "done", "h1": "unreachable", "h2": "done"}
    assert told.hosts["h1"].between
    hosts.hosts["h1"].reachable, hosts.hosts["h1"].module = True, NEW
    told = go_on(place, hosts)
    assert (told.status, told.hosts["h1"].phase, told.hosts["h1"].reboot) == ("done", "done", "made")
    assert hosts.hosts["h1"].rebooted == 1


def test_a_host_that_comes_up_otherwise_has_failed_though_its_services_run(tmp_path: Path) -> None:
    hosts = fleet(2, h0=host(boots="old"))
    told = forward(begin(tmp_path / "r", hosts, [1, 1]), hosts, tmp_path / "r")
    assert (told.hosts["h0"].phase, told.hosts["h0"].failed, told.status) == ("failed", True, "stopped")
    assert "not all of it agrees" in told.hosts["h0"].reason
    assert hosts.touched() == ["h0"]


def test_a_proof_that_fails_behind_the_reboot_is_judged_like_any_other(tmp_path: Path) -> None:
    hosts = fleet(2, h0=host(bad=True))
    told = forward(begin(tmp_path / "r", hosts, [1, 1]), hosts, tmp_path / "r")
    assert (told.hosts["h0"].phase, told.hosts["h0"].reboot, told.status) == ("rolled-back", "made", "stopped")
    assert told.hosts["h0"].checks["failed"] == ["answer"]


def test_a_host_that_somebody_locks_before_its_reboot_is_left_for_later(tmp_path: Path) -> None:
    hosts = fleet(2)
    hosts.on_reboot = lambda: hosts.taken.add("h0")
    told = forward(begin(tmp_path / "r", hosts, [1, 1]), hosts, tmp_path / "r")
    assert (told.hosts["h0"].phase, told.hosts["h0"].between, told.failures) == ("deferred", True, 0)
    assert (told.hosts["h0"].reboot, told.hosts["h0"].halfway) == ("waits", False), "it runs what it ran"
    assert hosts.hosts["h0"].rebooted == 0
    assert told.status == "incomplete"


def test_a_host_that_somebody_locks_behind_its_reboot_is_in_the_middle(tmp_path: Path) -> None:
    hosts = fleet(1)
    apply = hosts.apply

    def late(names: Sequence[str], *, prove: bool) -> dict[str, Any]:
        hosts.taken |= {name for name in names if hosts.hosts[name].rebooted}
        return apply(names, prove=prove)

    hosts.apply = late  # type: ignore[method-assign]  # somebody is quicker than the second half
    told = forward(begin(tmp_path / "r", hosts, [1]), hosts, tmp_path / "r")
    assert (told.hosts["h0"].phase, told.hosts["h0"].reboot, told.hosts["h0"].halfway) == ("deferred", "made", True)


def test_an_apply_that_failed_elsewhere_reboots_nothing(tmp_path: Path) -> None:
    """By its look the driver lacks a reboot alone, but that is not what ended the apply."""
    hosts = fleet(2, h0=Machinery(module=OLD, installed=NEW, early=True))
    told = forward(begin(tmp_path / "r", hosts, [1, 1]), hosts, tmp_path / "r")
    assert called(hosts, "may_reboot", "reboot") == []
    assert (told.hosts["h0"].phase, told.status) == ("rolled-back", "stopped")


@pytest.mark.parametrize("policy", ["defer", "fail"])
def test_a_canary_that_is_silent_when_it_is_asked_is_waited_for(tmp_path: Path, policy: str) -> None:
    hosts, place = fleet(2), tmp_path / "r"
    asked = hosts.may_reboot

    def gone(names: Sequence[str]) -> dict[str, Any]:
        hosts.hosts["h0"].reachable = False
        return asked(names)

    hosts.may_reboot = gone  # type: ignore[method-assign]  # its network fails between two calls
    told = forward(begin(place, hosts, [1, 1], unreachable=policy), hosts, place)
    first = told.hosts["h0"]
    assert (first.phase, first.between, first.reboot, first.halfway) == ("unreachable", True, "waits", False)
    assert (first.failed, told.hosts["h1"].phase) == (policy == "fail", "pending")
    if policy == "fail":
        assert (told.status, told.reason) == ("stopped", "1 failed, and 0 may")
        return
    assert (told.status, told.reason) == (
        "incomplete",
        "h0 waits for a reboot, and no host has proven the change yet",
    )
    hosts.may_reboot, hosts.hosts["h0"].reachable = asked, True  # type: ignore[method-assign]  # it is back
    assert go_on(place, hosts).status == "done"


def test_a_host_whose_reboot_was_begun_is_not_said_to_wait_when_it_is_silent(tmp_path: Path) -> None:
    hosts, place = fleet(1), tmp_path / "r"
    hosts.on_reboot = lambda: (_ for _ in ()).throw(Killed())
    with pytest.raises(Killed):
        forward(begin(place, hosts, [1]), hosts, place)
    lost = Reboot(result=Result(error=trouble("the host cannot be reached"), reached=False))
    hosts.may_reboot = lambda names: dict.fromkeys(names, lost)  # type: ignore[method-assign]  # it goes down now
    told = go_on(place, hosts)
    first = told.hosts["h0"]
    assert (told.status, first.phase, first.reboot, first.halfway) == ("incomplete", "unreachable", "begun", True)


def test_a_host_that_is_gone_when_it_is_asked_is_unreachable(tmp_path: Path) -> None:
    hosts = fleet(3, h1=host(verdict="now"))
    asked = hosts.may_reboot

    def gone(names: Sequence[str]) -> dict[str, Any]:
        hosts.hosts["h1"].reachable = "h1" not in names
        return asked(names)

    hosts.may_reboot = gone  # type: ignore[method-assign]  # its network fails between two calls
    told = forward(begin(tmp_path / "r", hosts, [1, 2]), hosts, tmp_path / "r")
    assert phases(told) == {"h0": "done", "h1": "unreachable", "h2": "done"}
    assert told.hosts["h1"].between


@pytest.mark.parametrize("verdict", ["now", "ask", "not-needed", "of a later version", ""])
def test_a_decision_that_came_with_an_error_is_none(tmp_path: Path, verdict: str) -> None:
    hosts = fleet(2)
    failed = Reboot(verdict, (NEEDED,), (), result=Result(error=trouble("the play broke off")))
    hosts.may_reboot = lambda names: dict.fromkeys(names, failed)  # type: ignore[method-assign]  # one answer for all
    told = forward(begin(tmp_path / "r", hosts, [1, 1], reboot=True), hosts, tmp_path / "r")
    assert called(hosts, "reboot") == []
    assert (told.hosts["h0"].phase, told.hosts["h0"].between, told.status) == ("deferred", True, "incomplete")
    assert "the play broke off" in told.hosts["h0"].reason


def test_a_verdict_that_nobody_knows_reboots_nothing(tmp_path: Path) -> None:
    hosts = fleet(2, h0=host(verdict="of a later version"))
    told = forward(begin(tmp_path / "r", hosts, [1, 1], reboot=True), hosts, tmp_path / "r")
    assert called(hosts, "reboot") == []
    assert told.hosts["h0"].phase == "deferred"


def test_nobody_else_is_begun_while_a_canary_in_the_middle_is_silent(tmp_path: Path) -> None:
    hosts, place = fleet(3), tmp_path / "r"
    hosts.on_reboot = lambda: (_ for _ in ()).throw(Killed())
    with pytest.raises(Killed):
        forward(begin(place, hosts, [1, 2]), hosts, place)
    hosts.on_reboot, hosts.hosts["h0"].reachable = None, False
    told = go_on(place, hosts)
    assert hosts.touched() == ["h0"]
    assert (told.status, told.hosts["h0"].phase, told.hosts["h0"].between) == ("incomplete", "unreachable", True)
    assert told.reason == "h0 is in the middle of its change, and no host has proven the change yet"
    hosts.hosts["h0"].reachable = True
    assert go_on(place, hosts).status == "done"


def test_a_proof_that_fails_behind_a_reboot_whose_end_nobody_saw_is_judged_like_any_other(tmp_path: Path) -> None:
    hosts, place = fleet(2, h0=host(bad=True)), tmp_path / "r"
    log = begin(place, hosts, [1, 1])
    hosts.on_reboot = lambda: (_ for _ in ()).throw(Killed())
    with pytest.raises(Killed):
        forward(log, hosts, place)
    hosts.on_reboot, hosts.hosts["h0"].module = None, NEW
    told = go_on(place, hosts)
    assert (told.hosts["h0"].phase, told.hosts["h0"].reboot, told.status) == ("rolled-back", "made", "stopped")


def test_all_that_were_in_the_middle_have_their_turn_though_the_first_waits(tmp_path: Path) -> None:
    hosts, place = fleet(3, h0=host(verdict="ask"), h1=Machinery()), tmp_path / "r"
    hosts.on_apply = lambda: (_ for _ in ()).throw(Killed())
    with pytest.raises(Killed):
        forward(begin(place, hosts, [2, 1], canary=2), hosts, place)
    assert hosts.hosts["h1"].half
    hosts.on_apply = None
    told = go_on(place, hosts)
    assert phases(told)["h1"] == "done"
    assert not hosts.hosts["h1"].half


def test_a_rollout_that_is_ended_reboots_nobody_any_more(tmp_path: Path) -> None:
    hosts, place = fleet(3, h0=host(verdict="ask")), tmp_path / "r"
    forward(begin(place, hosts, [1, 2]), hosts, place)
    hosts.hosts["h0"].verdict = "now"
    log = again(place)
    Machine(log, hosts, place, no_gate).settle()
    first = log.state.hosts["h0"]
    assert called(hosts, "reboot") == []
    assert (first.phase, first.between, first.reboot, hosts.hosts["h0"].touched) == ("deferred", False, "waits", 1)
    assert "see `rebuild`" in first.reason
