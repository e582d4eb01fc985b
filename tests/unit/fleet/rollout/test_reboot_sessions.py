"""The verbs over hosts that wait for a reboot: what ``resume``, ``abort`` and ``rollback`` make of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from llamarig.errors import RigError
from llamarig.fleet.rollout import places, refuse, session
from llamarig.fleet.rollout.session import Session, Start
from llamarig.fleet.rollout.state import State, Wave
from tests.unit.fleet.rollout.stand_in import Fleet, Killed, phases
from tests.unit.fleet.rollout.test_reboots import NEW, fleet, host

WISH = Start([Wave("canary", ["h0"]), Wave("wave 1", ["h1", "h2"])], {"canary": 1, "failures": 0}, {})


def given(root: Path, hosts: Fleet) -> Session:
    return Session(root, make_hands=lambda _root, _place, _private: hosts)


def test_resume_may_ask_for_the_reboots_and_the_journal_keeps_that(tmp_path: Path) -> None:
    hosts = fleet(3)
    for each in hosts.hosts.values():
        each.verdict = "ask"
    assert session.start(given(tmp_path, hosts), WISH).status == "incomplete"
    hosts.steps, hosts.kill_at = 0, 9
    with pytest.raises(Killed):
        session.resume(given(tmp_path, hosts), None, reboot=True)
    hosts.kill_at = -1
    assert State.read(places.find(tmp_path, None)).options == {"reboot": True}
    assert session.resume(given(tmp_path, hosts), None).status == "done"


def test_without_it_resume_asks_for_none(tmp_path: Path) -> None:
    hosts = fleet(3, h0=host(verdict="ask"))
    session.start(given(tmp_path, hosts), WISH)
    assert session.resume(given(tmp_path, hosts), None).status == "incomplete"
    with pytest.raises(RigError, match="nothing to pause") as told:
        session.pause(tmp_path, None)
    assert told.value.why == "h0 waits for a reboot, and no host has proven the change yet"


def test_what_waits_for_a_reboot_is_ended_by_an_abort_and_over_then(tmp_path: Path) -> None:
    hosts = fleet(3, h0=host(verdict="ask"))
    session.start(given(tmp_path, hosts), WISH)
    told = session.abort(given(tmp_path, hosts), None)
    assert (told.status, told.hosts["h0"].between) == ("aborted", False)
    with pytest.raises(RigError, match="is over"):
        session.resume(given(tmp_path, hosts), None)
    assert session.start(given(tmp_path, hosts), replace(WISH, options={"reboot": True})).status == "done"


def test_what_waits_for_a_reboot_is_nothing_to_take_back(tmp_path: Path) -> None:
    hosts = fleet(3, h0=host(verdict="ask"))
    session.start(given(tmp_path, hosts), WISH)
    with pytest.raises(RigError, match="nothing to take back") as told:
        session.rollback(given(tmp_path, hosts), None)
    assert "waits for a reboot runs what it ran" in told.value.why
    assert places.find(tmp_path, None).exists()


def test_a_way_back_leaves_what_waits_as_it_is(tmp_path: Path) -> None:
    hosts = fleet(3, h1=host(verdict="ask"))
    first = session.start(given(tmp_path, hosts), WISH)
    assert "2 hosts go back (h2, h0)" in refuse.to_take_back(first)
    told = session.rollback(given(tmp_path, hosts), None)
    assert phases(told) == {"h0": "rolled-back", "h1": "deferred", "h2": "rolled-back"}
    assert (hosts.hosts["h1"].touched, hosts.hosts["h1"].rebooted) == (1, 0)


def test_a_way_back_does_not_bring_to_its_end_what_was_rebooted_by_hand(tmp_path: Path) -> None:
    hosts = fleet(3, h1=host(verdict="ask"))
    first = session.start(given(tmp_path, hosts), WISH)
    hosts.hosts["h1"].module = NEW
    hosts.calls.clear()
    told = session.rollback(given(tmp_path, hosts), None)
    assert {name for _, names in hosts.calls for name in names} == {"h0", "h2"}, "those that the question names"
    assert "2 hosts go back (h2, h0)" in refuse.to_take_back(first)
    assert (told.hosts["h1"].phase, told.hosts["h1"].between, hosts.hosts["h1"].release) == ("deferred", False, "old")
    assert "see `rebuild`" in told.hosts["h1"].reason


def test_what_a_newer_rollout_made_of_a_host_that_waited_is_not_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts, names = fleet(3, h1=host(verdict="ask")), iter(["20261201T010000Z-00000001", "20261201T020000Z-00000002"])
    monkeypatch.setattr(places, "new", lambda root: root / places.DIRECTORY / next(names))
    old = session.start(given(tmp_path, hosts), WISH)
    hosts.hosts["h1"].module, hosts.wanted = NEW, "newer"
    assert session.start(given(tmp_path, hosts), Start([Wave("canary", ["h1"])], {"canary": 1}, {})).status == "done"
    hosts.wanted = "new"
    with pytest.raises(RigError, match="a newer rollout has changed h1"):
        session.rollback(given(tmp_path, hosts), old.id)
    assert hosts.hosts["h1"].release == "newer"


def test_the_end_of_a_host_that_was_rebooted_by_hand_is_seen_though_the_controller_dies(tmp_path: Path) -> None:
    """It runs no longer what it ran, so a way back has to bring it to its end first."""
    hosts = fleet(3, h1=host(verdict="ask"))
    session.start(given(tmp_path, hosts), WISH)
    hosts.hosts["h1"].module = NEW
    hosts.on_apply = lambda: (_ for _ in ()).throw(Killed())
    with pytest.raises(Killed):
        session.resume(given(tmp_path, hosts), None)
    hosts.on_apply = None
    known = State.read(places.find(tmp_path, None))
    assert known.hosts["h1"].halfway
    assert "3 hosts go back (h1, h2, h0)" in refuse.to_take_back(known)
    told = session.rollback(given(tmp_path, hosts), None)
    assert phases(told) == dict.fromkeys(("h0", "h1", "h2"), "rolled-back")
    assert not hosts.hosts["h1"].half


def test_a_stopped_rollout_brings_what_waits_to_its_end_without_a_reboot(tmp_path: Path) -> None:
    hosts = fleet(3, h1=host(bad=True), h2=host(verdict="waits", why=("kim is logged in",)))
    stopped = session.start(given(tmp_path, hosts), WISH)
    assert (stopped.status, phases(stopped)["h2"], stopped.hosts["h2"].between) == ("stopped", "deferred", True)
    hosts.hosts["h2"].verdict = "now"
    told = session.resume(given(tmp_path, hosts), None, reboot=True)
    assert (told.status, told.hosts["h2"].between, hosts.hosts["h2"].rebooted) == ("stopped", False, 0)
    with pytest.raises(RigError, match="is over"):
        session.resume(given(tmp_path, hosts), None)
