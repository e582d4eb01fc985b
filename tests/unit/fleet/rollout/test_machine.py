"""Waves, gates and the budget, on hosts that are a few fields each."""

from __future__ import annotations

from pathlib import Path

import pytest

from llamarig.errors import ExitCode
from llamarig.fleet.rollout import control
from llamarig.fleet.rollout.machine import CHANGED
from llamarig.fleet.rollout.session import exit_code
from tests.unit.fleet.rollout.stand_in import Fleet, Machinery, begin, forward, phases, trouble


def fleet(count: int, **bad: Machinery) -> Fleet:
    return Fleet({f"h{number}": bad.get(f"h{number}", Machinery()) for number in range(count)})


def applies(hosts: Fleet) -> list[tuple[str, ...]]:
    return [names for what, names in hosts.calls if what == "apply"]


def test_a_canary_goes_alone_and_the_waves_behind_it(tmp_path: Path) -> None:
    hosts = fleet(5)
    told = forward(begin(tmp_path / "r", hosts, [1, 2, 2]), hosts, tmp_path / "r")
    assert applies(hosts) == [("h0",), ("h1", "h2"), ("h3", "h4")]
    assert set(phases(told).values()) == {"done"}
    assert told.status == "done"
    assert exit_code(told) == ExitCode.OK
    assert told.hosts["h0"].from_release == "old"
    assert told.hosts["h0"].run == "run-1"


def test_a_converged_fleet_costs_one_look(tmp_path: Path) -> None:
    hosts = fleet(8)
    for host in hosts.hosts.values():
        host.release = "new"
    told = forward(begin(tmp_path / "r", hosts, [1, 3, 4]), hosts, tmp_path / "r")
    assert [what for what, _ in hosts.calls] == ["load", "look"]
    assert set(phases(told).values()) == {"nothing-to-do"}
    assert exit_code(told) == ExitCode.OK


def test_verify_proves_hosts_with_nothing_to_do(tmp_path: Path) -> None:
    hosts = fleet(2)
    for host in hosts.hosts.values():
        host.release = "new"
    told = forward(begin(tmp_path / "r", hosts, [1, 1], verify=True), hosts, tmp_path / "r")
    assert set(phases(told).values()) == {"nothing-to-do"}
    assert told.hosts["h1"].checks == {"passed": 2, "of": 2, "failed": []}
    assert hosts.proven == ["h0", "h1"]


def test_a_bad_change_touches_the_canary_alone(tmp_path: Path) -> None:
    hosts = fleet(8, h0=Machinery(bad=True))
    told = forward(begin(tmp_path / "r", hosts, [1, 3, 4]), hosts, tmp_path / "r")
    assert hosts.touched() == ["h0"]
    assert phases(told) == {"h0": "rolled-back", **{f"h{number}": "pending" for number in range(1, 8)}}
    assert told.hosts["h0"].checks["failed"] == ["answer"]
    assert told.status == "stopped"
    assert told.budget == {"allowed": 0, "used": 1}
    assert exit_code(told) == ExitCode.HOST_FAILED


def test_a_host_that_does_not_come_back_is_failed(tmp_path: Path) -> None:
    hosts = fleet(2, h0=Machinery(bad=True, sticks=True))
    told = forward(begin(tmp_path / "r", hosts, [1, 1]), hosts, tmp_path / "r")
    assert phases(told)["h0"] == "failed"
    assert told.status == "stopped"


def test_the_budget_counts_over_all_waves(tmp_path: Path) -> None:
    hosts = fleet(7, h1=Machinery(bad=True), h3=Machinery(bad=True))
    told = forward(begin(tmp_path / "r", hosts, [1, 2, 2, 2], failures=1), hosts, tmp_path / "r")
    assert applies(hosts) == [("h0",), ("h1", "h2"), ("h3", "h4")]
    assert told.status == "stopped"
    assert phases(told)["h4"] == "done", "hosts of the wave in progress finish"
    assert not hosts.hosts["h5"].touched


def test_failures_within_the_budget_do_not_stop_it_but_are_told(tmp_path: Path) -> None:
    hosts = fleet(3, h1=Machinery(bad=True))
    told = forward(begin(tmp_path / "r", hosts, [1, 1, 1], failures=1), hosts, tmp_path / "r")
    assert told.status == "done-with-failures"
    assert exit_code(told) == ExitCode.HOST_FAILED
    assert phases(told) == {"h0": "done", "h1": "rolled-back", "h2": "done"}


def test_an_unreachable_canary_is_deferred_and_the_next_host_goes_alone(tmp_path: Path) -> None:
    hosts = fleet(4, h0=Machinery(reachable=False))
    told = forward(begin(tmp_path / "r", hosts, [1, 3]), hosts, tmp_path / "r")
    assert applies(hosts) == [("h1",), ("h2", "h3")]
    assert phases(told)["h0"] == "unreachable"
    assert told.status == "incomplete"
    assert exit_code(told) == ExitCode.FINDING


def test_unreachable_hosts_fail_where_the_policy_says_so(tmp_path: Path) -> None:
    hosts = fleet(2, h1=Machinery(reachable=False))
    told = forward(begin(tmp_path / "r", hosts, [1, 1], unreachable="fail"), hosts, tmp_path / "r")
    assert told.status == "stopped"
    assert exit_code(told) == ExitCode.HOST_FAILED
    assert not hosts.touched()


def test_a_host_lost_in_the_middle_does_not_stop_the_others_once_the_change_is_proven(tmp_path: Path) -> None:
    hosts = fleet(5, h1=Machinery(lost=True))
    told = forward(begin(tmp_path / "r", hosts, [1, 2, 2]), hosts, tmp_path / "r")
    assert phases(told) == {"h0": "done", "h1": "unreachable", "h2": "done", "h3": "done", "h4": "done"}
    assert told.hosts["h1"].between
    assert exit_code(told) == ExitCode.FINDING


def test_a_canary_lost_in_the_middle_stops_it(tmp_path: Path) -> None:
    hosts = fleet(3, h0=Machinery(lost=True))
    told = forward(begin(tmp_path / "r", hosts, [1, 2]), hosts, tmp_path / "r")
    assert hosts.touched() == ["h0"]
    assert told.status == "stopped"
    assert "h0 was lost" in told.reason


def test_a_spec_that_changed_is_noticed_at_its_hosts_turn(tmp_path: Path) -> None:
    hosts = fleet(3)

    def edit() -> None:
        hosts.hosts["h2"].spec = "edited"

    hosts.on_apply = edit
    told = forward(begin(tmp_path / "r", hosts, [1, 2]), hosts, tmp_path / "r")
    assert phases(told) == {"h0": "done", "h1": "done", "h2": "deferred"}
    assert told.hosts["h2"].reason == CHANGED
    assert not hosts.hosts["h2"].touched


@pytest.mark.parametrize(("told", "phase"), [("spec, whole", "done"), ("edited, whole", "deferred"), ("", "done")])
def test_a_spec_that_an_older_journal_pinned_is_known_again(tmp_path: Path, told: str, phase: str) -> None:
    hosts = Fleet({"a": Machinery()}, wholes=True)
    log = begin(tmp_path / "r", hosts, [1])
    log.state.hosts["a"].spec = told
    assert phases(forward(log, hosts, tmp_path / "r")) == {"a": phase}


def test_a_changed_spec_is_taken_where_it_was_accepted(tmp_path: Path) -> None:
    hosts = fleet(2)
    log = begin(tmp_path / "r", hosts, [1, 1], accept_changed=True)
    hosts.hosts["h1"].spec = "edited"
    assert phases(forward(log, hosts, tmp_path / "r")) == {"h0": "done", "h1": "done"}


def test_a_spec_that_became_bad_leaves_its_host_alone_and_the_others_go_on(tmp_path: Path) -> None:
    hosts = fleet(3)
    hosts.broken["h1"] = trouble("the spec has errors")
    told = forward(begin(tmp_path / "r", hosts, [1, 1, 1]), hosts, tmp_path / "r")
    assert phases(told) == {"h0": "done", "h1": "deferred", "h2": "done"}
    assert "the spec has errors" in told.hosts["h1"].reason


def test_a_locked_host_and_one_in_use_are_deferred(tmp_path: Path) -> None:
    hosts = fleet(3, h1=Machinery(locked="kim on desk (process 7)"))

    def gate(names: object) -> dict[str, str]:
        return {"h2": "logged in: kim"}

    told = forward(begin(tmp_path / "r", hosts, [1, 2]), hosts, tmp_path / "r", gate)
    assert phases(told) == {"h0": "done", "h1": "deferred", "h2": "deferred"}
    assert "kim on desk" in told.hosts["h1"].reason
    assert told.hosts["h2"].reason == "logged in: kim"
    assert hosts.touched() == ["h0"]


@pytest.mark.parametrize(("asked", "status"), [(control.PAUSE, "paused"), (control.ABORT, "aborted")])
def test_what_is_asked_from_aside_waits_for_the_hosts_in_progress(tmp_path: Path, asked: str, status: str) -> None:
    hosts, place = fleet(4), tmp_path / "r"
    log = begin(place, hosts, [2, 2])
    hosts.on_apply = lambda: control.ask(place, asked)
    told = forward(log, hosts, place)
    assert told.status == status
    assert [phase for phase in phases(told).values() if phase == "done"] == ["done", "done"]
    assert hosts.touched() == ["h0", "h1"]
    assert control.asked(place) == ""
    assert exit_code(told) == ExitCode.FINDING


def test_one_host_builds_for_all_that_want_the_same(tmp_path: Path) -> None:
    hosts = fleet(4)
    hosts.builds = True
    told = forward(begin(tmp_path / "r", hosts, [0, 4]), hosts, tmp_path / "r")
    assert applies(hosts) == [("h0",), ("h1", "h2", "h3")]
    assert ("share", ("h0",)) in hosts.calls
    assert set(phases(told).values()) == {"done"}


def test_an_abort_is_not_taken_back_by_a_pause(tmp_path: Path) -> None:
    control.ask(tmp_path, control.ABORT)
    control.ask(tmp_path, control.PAUSE)
    assert control.asked(tmp_path) == control.ABORT


def test_a_host_whose_release_cannot_be_made_is_left_for_later(tmp_path: Path) -> None:
    hosts = fleet(3)
    hosts.unbuilt = {"h0": trouble("its release could not be made on the builder")}
    told = forward(begin(tmp_path / "r", hosts, [1, 2]), hosts, tmp_path / "r")
    assert phases(told)["h0"] == "deferred"
    assert applies(hosts) == [("h1",), ("h2",)], "another host is the canary"


def test_a_host_that_somebody_took_between_the_look_and_the_change_is_deferred(tmp_path: Path) -> None:
    hosts = fleet(2)
    hosts.taken = {"h1"}
    told = forward(begin(tmp_path / "r", hosts, [1, 1]), hosts, tmp_path / "r")
    assert phases(told) == {"h0": "done", "h1": "deferred"}
    assert not told.hosts["h1"].between


def test_a_host_that_somebody_else_made_as_wanted_is_nothing_to_do(tmp_path: Path) -> None:
    hosts = fleet(2)

    def meanwhile() -> None:
        hosts.hosts["h1"].release = "new"

    hosts.on_apply = meanwhile
    told = forward(begin(tmp_path / "r", hosts, [1, 1]), hosts, tmp_path / "r")
    assert phases(told) == {"h0": "done", "h1": "nothing-to-do"}
    assert told.hosts["h1"].run is None


def test_a_change_that_failed_because_the_host_is_gone_is_no_failure(tmp_path: Path) -> None:
    hosts = fleet(3)
    hosts.hosts["h1"].bad = True

    def unplugged() -> None:
        hosts.hosts["h1"].reachable = not hosts.hosts["h1"].half

    hosts.on_apply = unplugged
    told = forward(begin(tmp_path / "r", hosts, [1, 2]), hosts, tmp_path / "r")
    assert phases(told) == {"h0": "done", "h1": "unreachable", "h2": "done"}
    assert told.hosts["h1"].between
    assert told.failures == 0
