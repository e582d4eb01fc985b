"""A controller that dies at any step: whoever goes on finds every host, and leaves none in the middle."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from llamarig.errors import RigError
from llamarig.fleet.rollout.back import Back
from llamarig.fleet.rollout.machine import Machine
from llamarig.fleet.rollout.state import State
from tests.unit.fleet.rollout.stand_in import Fleet, Killed, Machinery, again, begin, no_gate, phases

FEWEST = 8
"""Steps that each of these has at least: fewer would mean that the kill points are not reached."""


def fleet(**bad: Machinery) -> Fleet:
    return Fleet({name: bad.get(name, Machinery()) for name in ("a", "b", "c", "d")})


def drive(place: Path, hosts: Fleet, sizes: tuple[int, ...], **policy: object) -> bool:
    """A rollout until it ends or is killed; whether it was."""
    log = begin(place, hosts, sizes, **policy)
    try:
        Machine(log, hosts, place, no_gate).forward()
    except Killed:
        return True
    finally:
        log.journal.close()
    return False


def go_on(place: Path, hosts: Fleet) -> State:
    hosts.kill_at = -1
    log = again(place)
    log.tell({"event": "resumed"})
    Machine(log, hosts, place, no_gate).forward()
    log.journal.close()
    return log.state


def each_step(top: Path, killed: Callable[[Path, int], bool]) -> None:
    """Run it again and again, killed one step later each time, until it gets through."""
    for at in itertools.count():
        if not killed(top / f"at-{at}", at):
            assert at >= FEWEST
            return


def test_a_rollout_killed_anywhere_ends_with_every_host_as_asked(tmp_path: Path) -> None:
    each_step(tmp_path, killed_rollout)


def killed_rollout(place: Path, at: int) -> bool:
    hosts = fleet()
    hosts.kill_at = at
    if not drive(place, hosts, (1, 1, 2)):
        return False
    told = go_on(place, hosts)
    assert {host.release for host in hosts.hosts.values()} == {"new"}
    assert not any(host.half for host in hosts.hosts.values())
    assert set(phases(told).values()) <= {"done", "nothing-to-do"}
    assert not any(host.between for host in told.hosts.values())
    assert told.status == "done"
    assert State.read(place).to_json() == told.to_json()
    assert {name for name, host in told.hosts.items() if host.phase == "done"} == set(hosts.touched())
    return True


def rebooting(**other: Machinery) -> Fleet:
    made = Fleet({name: other.get(name, Machinery(module="1", installed="1")) for name in ("a", "b", "c")}, driver="2")
    made.hosts["d"] = Machinery(release="new", module="1", installed="1")
    return made


def test_a_rollout_with_reboots_killed_anywhere_ends_with_every_host_up_and_as_asked(tmp_path: Path) -> None:
    each_step(tmp_path, killed_reboots)


def killed_reboots(place: Path, at: int) -> bool:
    hosts = rebooting()
    hosts.kill_at = at
    if not drive(place, hosts, (1, 1, 2)):
        return False
    told = go_on(place, hosts)
    assert {(host.release, host.module, host.half) for host in hosts.hosts.values()} == {("new", "2", False)}
    assert {host.rebooted for host in hosts.hosts.values()} == {1}, "nobody is rebooted twice"
    assert set(phases(told).values()) <= {"done", "nothing-to-do"}
    assert not any(host.between for host in told.hosts.values())
    assert told.status == "done"
    assert State.read(place).to_json() == told.to_json()
    return True


def test_a_canary_that_waits_killed_anywhere_is_the_only_one_that_was_touched(tmp_path: Path) -> None:
    each_step(tmp_path, killed_waiting)


def killed_waiting(place: Path, at: int) -> bool:
    hosts = rebooting(a=Machinery(module="1", installed="1", verdict="ask"))
    hosts.kill_at = at
    if not drive(place, hosts, (1, 3)):
        return False
    told = go_on(place, hosts)
    assert hosts.touched() == ["a"]
    assert phases(told) == {"a": "deferred", "b": "pending", "c": "pending", "d": "pending"}
    assert (told.status, told.hosts["a"].between, told.hosts["a"].reboot) == ("incomplete", True, "waits")
    assert sum(host.rebooted for host in hosts.hosts.values()) == 0
    return True


def test_a_host_that_goes_down_with_its_controller_is_never_silently_done(tmp_path: Path) -> None:
    each_step(tmp_path, killed_and_down)


def killed_and_down(place: Path, at: int) -> bool:
    hosts = rebooting(a=Machinery(module="1", installed="1", boots="not"))
    hosts.kill_at = at
    if not drive(place, hosts, (1, 3)):
        return False
    told = go_on(place, hosts)
    assert phases(told)["a"] == "unreachable"
    assert told.hosts["a"].between
    assert told.status in ("stopped", "incomplete")
    assert hosts.touched() == ["a"]
    return True


def test_a_bad_change_killed_anywhere_ends_as_it_would_have(tmp_path: Path) -> None:
    each_step(tmp_path, killed_bad_change)


def killed_bad_change(place: Path, at: int) -> bool:
    hosts = fleet(a=Machinery(bad=True))
    hosts.kill_at = at
    if not drive(place, hosts, (1, 3)):
        return False
    told = go_on(place, hosts)
    assert hosts.touched() == ["a"]
    assert {host.release for host in hosts.hosts.values()} == {"old"}
    assert not any(host.half for host in hosts.hosts.values())
    assert told.status == "stopped"
    return True


def test_a_way_back_killed_anywhere_ends_with_every_host_as_it_was(tmp_path: Path) -> None:
    each_step(tmp_path, killed_way_back)


def killed_way_back(place: Path, at: int) -> bool:
    hosts = fleet(d=Machinery(reachable=False))
    drive(place, hosts, (1, 1, 2))
    hosts.steps, hosts.kill_at = 0, at
    log = again(place)
    try:
        Back(log, hosts).all()
    except Killed:
        log.journal.close()
    else:
        return False
    hosts.kill_at = -1
    log = again(place)
    assert log.state.status == "rolling-back"
    Back(log, hosts).all()
    assert {host.release for host in hosts.hosts.values()} == {"old"}
    assert {name: phase for name, phase in phases(log.state).items() if name != "d"} == dict.fromkeys(
        ("a", "b", "c"), "rolled-back"
    )
    assert log.state.status == "rolled-back"
    return True


def test_a_host_in_the_middle_is_brought_to_an_end_though_its_spec_changed(tmp_path: Path) -> None:
    place, hosts = tmp_path / "r", fleet()
    hosts.on_apply = lambda: (_ for _ in ()).throw(Killed())
    drive(place, hosts, (1, 3))
    assert hosts.hosts["a"].half
    hosts.on_apply = None
    for host in hosts.hosts.values():
        host.spec = "edited"
    told = go_on(place, hosts)
    assert phases(told) == {"a": "done", "b": "deferred", "c": "deferred", "d": "deferred"}
    assert not hosts.hosts["a"].half


def test_settling_touches_only_hosts_in_the_middle(tmp_path: Path) -> None:
    place, hosts = tmp_path / "r", fleet()
    hosts.on_apply = lambda: (_ for _ in ()).throw(Killed())
    drive(place, hosts, (2, 2))
    hosts.on_apply = None
    log = again(place)
    Machine(log, hosts, place, no_gate).settle()
    assert phases(log.state) == {"a": "done", "b": "done", "c": "pending", "d": "pending"}
    assert hosts.touched() == ["a", "b"]


def test_a_lost_host_is_brought_to_an_end_when_it_is_back(tmp_path: Path) -> None:
    place, hosts = tmp_path / "r", fleet(b=Machinery(lost=True))
    drive(place, hosts, (1, 3))
    assert State.read(place).status == "incomplete"
    hosts.hosts["b"].lost, hosts.hosts["b"].reachable = False, True
    told = go_on(place, hosts)
    assert told.status == "done"
    assert {host.release for host in hosts.hosts.values()} == {"new"}


def test_a_way_back_takes_the_last_first_and_leaves_what_changed_since(tmp_path: Path) -> None:
    place, hosts = tmp_path / "r", fleet(d=Machinery(release="new"))
    drive(place, hosts, (1, 1, 2))
    hosts.hosts["b"].run = "by-hand"
    log = again(place)
    hosts.calls.clear()
    Back(log, hosts).all()
    assert [names for what, names in hosts.calls if what == "back"] == [("c",), ("a",)]
    assert phases(log.state) == {"a": "rolled-back", "b": "deferred", "c": "rolled-back", "d": "nothing-to-do"}
    assert "by-hand" in log.state.hosts["b"].reason
    assert hosts.hosts["b"].release == "new"


def test_a_way_back_undoes_no_change_from_before_where_this_one_altered_the_driver_alone(tmp_path: Path) -> None:
    """Nothing of what it keeps differs, so the way back of the host is still that of the change before."""
    hosts = Fleet(
        {
            "a": Machinery(release="new", module="1", run="run-b", former=("new", "run-a")),
            "b": Machinery(release="new", module="1", run="run-b"),
            "c": Machinery(former=("older", "run-a"), run="run-b"),
        },
        driver="2",
    )
    place = tmp_path / "r"
    drive(place, hosts, (1, 2))
    assert phases(State.read(place)) == dict.fromkeys("abc", "done")
    hosts.calls.clear()
    log = again(place)
    Back(log, hosts).all()
    assert [names for what, names in hosts.calls if what == "back"] == [("c",)]
    assert phases(log.state) == {"a": "deferred", "b": "deferred", "c": "rolled-back"}
    for name in "ab":
        assert "changed nothing of it that a way back restores" in log.state.hosts[name].reason


def test_a_host_that_was_rolled_back_before_the_rollout_goes_back_to_that(tmp_path: Path) -> None:
    hosts = Fleet({"a": Machinery(run="the-way-back", proven="run-a", former=("newer", "run-b"))})
    place = tmp_path / "r"
    drive(place, hosts, (1,))
    assert hosts.hosts["a"].former == ("old", "run-a")
    log = again(place)
    Back(log, hosts).all()
    assert (phases(log.state), hosts.hosts["a"].release) == ({"a": "rolled-back"}, "old")


def test_a_journal_from_before_does_not_say_so_and_the_host_goes_back(tmp_path: Path) -> None:
    hosts = fleet()
    place = tmp_path / "r"
    drive(place, hosts, (1, 3))
    log = again(place)
    for known in log.state.hosts.values():
        known.former_run = None
    Back(log, hosts).all()
    assert phases(log.state) == dict.fromkeys("abcd", "rolled-back")


def test_a_host_that_cannot_go_back_is_told_and_the_others_go(tmp_path: Path) -> None:
    place, hosts = tmp_path / "r", fleet()
    drive(place, hosts, (1, 3))
    hosts.hosts["b"].bad = True
    log = again(place)
    Back(log, hosts).all()
    assert phases(log.state) == {"a": "rolled-back", "b": "failed", "c": "rolled-back", "d": "rolled-back"}


def test_a_damaged_journal_is_not_gone_on_with(tmp_path: Path) -> None:
    place, hosts = tmp_path / "r", fleet()
    drive(place, hosts, (1, 3))
    path = place / "journal.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"phase":"done"', b'"phase":"pend"', 1))
    with pytest.raises(RigError, match="damaged"):
        again(place)
