"""The verbs: what each refuses, what it leaves behind, and who holds the fleet."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from llamarig.errors import ExitCode, RigError, RigErrors
from llamarig.fleet.rollout import control, places, session
from llamarig.fleet.rollout.lock import fleet_lock, holder, refuse_while_rolling
from llamarig.fleet.rollout.session import Session, Start
from llamarig.fleet.rollout.state import State, Wave
from tests.unit.fleet.rollout.stand_in import Fleet, Killed, Machinery, phases, trouble

WISH = Start([Wave("canary", ["a"]), Wave("wave 1", ["b", "c"])], {"canary": 1, "failures": 0}, {"verify": False})


@pytest.fixture
def hosts() -> Fleet:
    return Fleet({name: Machinery() for name in ("a", "b", "c")})


@pytest.fixture
def given(tmp_path: Path, hosts: Fleet) -> Session:
    return Session(tmp_path, make_hands=lambda _root, _place, _private: hosts)


def place(given: Session) -> Path:
    return places.find(given.root, None)


def test_a_rollout_leaves_a_private_journal_that_pins_every_host(given: Session) -> None:
    told = session.start(given, WISH)
    assert told.status == "done"
    assert stat.S_IMODE(place(given).stat().st_mode) == 0o700
    first = json.loads((place(given) / "journal.jsonl").read_text().splitlines()[0])
    assert first["hosts"]["b"] == {"spec": "spec", "wanted": "w-spec", "to-release": "new"}
    assert first["waves"][1] == {"name": "wave 1", "hosts": ["b", "c"]}
    assert holder(given.root) is None


def test_where_every_host_is_refused_nothing_begins_and_each_is_named(given: Session, hosts: Fleet) -> None:
    hosts.broken = {name: trouble("is not locked") for name in "abc"}
    with pytest.raises(RigErrors) as told:
        session.start(given, WISH)
    assert [(error.where, error.what) for error in told.value.errors] == [(name, "is not locked") for name in "abc"]
    assert places.known(given.root) == []
    assert hosts.touched() == []


def test_a_refused_host_is_left_alone_and_the_others_are_gone_on_with(given: Session, hosts: Fleet) -> None:
    hosts.broken = {"a": trouble("does not fit")}
    bad = RigError("the spec has errors", fix="mend it")
    told = session.start(given, replace(WISH, refused={"c": bad}))
    assert phases(told) == {"a": "refused", "b": "done", "c": "refused"}
    assert (told.hosts["a"].reason, told.hosts["c"].reason) == ("does not fit", "the spec has errors; fix: mend it")
    assert told.status == "incomplete"
    assert session.exit_code(told) == ExitCode.BAD_INPUT
    assert not any("a" in names for call, names in hosts.calls if call == "look")
    hosts.broken = {}
    told = session.resume(given, None)
    assert (told.status, phases(told)) == ("done", dict.fromkeys("abc", "done"))
    assert (told.hosts["a"].reason, told.hosts["a"].to_release) == ("", "new")


def test_a_failed_host_counts_more_than_a_refused_one(given: Session, hosts: Fleet) -> None:
    hosts.broken, hosts.hosts["b"].bad = {"a": trouble("does not fit")}, True
    told = session.start(given, WISH)
    assert phases(told)["b"] == "rolled-back"
    assert session.exit_code(told) == ExitCode.HOST_FAILED


def killed(given: Session, hosts: Fleet) -> None:
    hosts.on_apply = lambda: (_ for _ in ()).throw(Killed())
    with pytest.raises(Killed):
        session.start(given, WISH)
    hosts.on_apply = None


def test_a_second_start_is_refused_until_the_first_is_over(given: Session, hosts: Fleet) -> None:
    killed(given, hosts)
    with pytest.raises(RigError, match="was cut off"):
        session.start(given, WISH)
    assert session.resume(given, None).status == "done"
    assert session.start(given, WISH).status == "done"


def test_an_abort_of_a_rollout_that_died_settles_its_hosts(given: Session, hosts: Fleet) -> None:
    killed(given, hosts)
    assert session.ask_to_abort(given.root, None) is None
    told = session.abort(given, None)
    assert told.status == "aborted"
    assert phases(told) == {"a": "done", "b": "pending", "c": "pending"}
    with pytest.raises(RigError, match="is over"):
        session.resume(given, None)
    with pytest.raises(RigError, match="is over"):
        session.pause(given.root, None)


def test_nobody_is_looked_at_any_more_once_it_was_aborted(given: Session, hosts: Fleet) -> None:
    hosts.kill_at = 1  # within the look at all
    with pytest.raises(Killed):
        session.start(given, WISH)
    hosts.kill_at = -1
    assert set(phases(State.read(place(given))).values()) == {"observing"}
    assert set(phases(session.abort(given, None)).values()) == {"pending"}


def test_a_rollout_that_nobody_drives_is_paused_at_once_and_goes_on(given: Session, hosts: Fleet) -> None:
    killed(given, hosts)
    assert session.pause(given.root, None).status == "paused"
    with pytest.raises(RigError, match="is paused"):
        session.start(given, WISH)
    assert session.resume(given, None).status == "done"


def test_a_rollout_that_runs_is_asked_to_pause(given: Session, hosts: Fleet) -> None:
    def aside() -> None:
        hosts.on_apply = None
        assert session.driver(given.root, State.read(place(given))) is not None
        session.pause(given.root, None)

    hosts.on_apply = aside
    told = session.start(given, WISH)
    assert told.status == "paused"
    assert phases(told) == {"a": "done", "b": "pending", "c": "pending"}
    assert session.resume(given, None).status == "done"


def test_a_stopped_rollout_does_not_go_on(given: Session, hosts: Fleet) -> None:
    hosts.hosts["a"].bad = True
    assert session.start(given, WISH).status == "stopped"
    with pytest.raises(RigError, match="is over") as told:
        session.resume(given, None)
    assert "1 failed, and 0 may" in told.value.why
    hosts.hosts["a"].bad = False
    assert session.start(given, WISH).status == "done"


def test_a_rollback_takes_back_what_a_stopped_rollout_had_done(given: Session, hosts: Fleet) -> None:
    hosts.hosts["c"].bad = True
    assert session.start(given, WISH).status == "stopped"
    told = session.rollback(given, None)
    assert told.status == "rolled-back"
    assert phases(told) == dict.fromkeys("abc", "rolled-back")
    assert {host.release for host in hosts.hosts.values()} == {"old"}
    assert session.exit_code(told) == ExitCode.OK
    with pytest.raises(RigError, match="is over"):
        session.rollback(given, None)


def test_a_rollback_that_was_cut_off_is_taken_up_by_resume(given: Session, hosts: Fleet) -> None:
    session.start(given, WISH)
    hosts.steps, hosts.kill_at = 0, 2
    with pytest.raises(Killed):
        session.rollback(given, None)
    hosts.kill_at = -1
    with pytest.raises(RigError, match="on its way back"):
        session.start(given, WISH)
    assert session.resume(given, None).status == "rolled-back"
    assert {host.release for host in hosts.hosts.values()} == {"old"}


def test_only_the_newest_rollout_is_gone_on_with(given: Session, hosts: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    names = iter(["20260101T000000Z-00000000", "20260101T000001Z-00000000"])
    monkeypatch.setattr(places, "new_run", lambda: next(names))
    hosts.hosts["c"].reachable = False
    assert session.start(given, WISH).status == "incomplete"
    first, hosts.wanted = place(given).name, "newer"
    session.start(given, WISH)
    for verb in (session.resume, session.abort):
        with pytest.raises(RigError, match="a newer rollout has come since"):
            verb(given, first)
    assert State.read(places.find(given.root, first)).id == first


def two(given: Session, hosts: Fleet, monkeypatch: pytest.MonkeyPatch, second: Start) -> tuple[str, State]:
    """A rollout over all hosts and one after it, to another release; the id of the first, the state of the second."""
    names = iter(["20260101T000000Z-00000000", "20260101T000001Z-00000000"])
    monkeypatch.setattr(places, "new_run", lambda: next(names))
    first = session.start(given, WISH).id
    hosts.wanted = "newer"
    return first, session.start(given, second)


def test_an_older_rollout_is_taken_back_while_a_newer_one_changed_others(
    given: Session, hosts: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts.hosts["d"] = Machinery()
    first, newer = two(given, hosts, monkeypatch, Start([Wave("canary", ["d"])], {"canary": 1}, {}))
    assert newer.status == "done"
    assert session.rollback(given, first).status == "rolled-back"
    assert {name: host.release for name, host in hosts.hosts.items()} == dict.fromkeys("abc", "old") | {"d": "newer"}


def test_an_older_rollout_is_not_taken_back_where_a_newer_one_changed_its_hosts(
    given: Session, hosts: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, newer = two(given, hosts, monkeypatch, Start([Wave("canary", ["b"])], {"canary": 1}, {}))
    with pytest.raises(RigError, match="a newer rollout has changed b") as told:
        session.rollback(given, first)
    assert newer.id in told.value.why
    assert session.rollback(given, None).status == "rolled-back"
    with pytest.raises(RigError, match="a newer rollout has changed b"):
        session.rollback(given, first)
    assert State.read(places.find(given.root, first)).status == "done"


def test_an_older_rollout_on_its_way_back_holds_up_a_new_one_until_it_is_gone_on_with(
    given: Session, hosts: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts.hosts["d"] = Machinery()
    first, _ = two(given, hosts, monkeypatch, Start([Wave("canary", ["d"])], {"canary": 1}, {}))
    hosts.steps, hosts.kill_at = 0, 2
    with pytest.raises(Killed):
        session.rollback(given, first)
    hosts.kill_at = -1
    with pytest.raises(RigError, match="on its way back") as told:
        session.start(given, WISH)
    assert first in told.value.fix
    assert session.resume(given, first).status == "rolled-back"


def test_a_way_back_of_nothing_leaves_the_status(given: Session, hosts: Fleet) -> None:
    hosts.wanted = "old"
    assert session.start(given, WISH).status == "done"
    with pytest.raises(RigError, match="nothing to take back"):
        session.rollback(given, None)
    assert State.read(place(given)).status == "done"


def test_of_two_the_second_is_told_who_holds_the_fleet(given: Session) -> None:
    with fleet_lock(given.root, "start"):
        with pytest.raises(RigError) as told:
            session.start(given, WISH)
        assert f"process {os.getpid()}" in told.value.why
        with pytest.raises(RigError, match="is running"):
            refuse_while_rolling(given.root)
    refuse_while_rolling(given.root)


def test_the_fleet_is_free_again_when_its_holder_is_killed(tmp_path: Path) -> None:
    code = (
        "import sys, time, pathlib; from llamarig.fleet.rollout.lock import fleet_lock\n"
        "with fleet_lock(pathlib.Path(sys.argv[1]), 'start'):\n print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        found = holder(tmp_path)
        assert found is not None
        assert found["pid"] == process.pid
        process.kill()
        process.wait()
    assert holder(tmp_path) is None


def test_there_is_nothing_to_show_before_the_first_rollout(tmp_path: Path) -> None:
    with pytest.raises(RigError, match="no rollout"):
        places.find(tmp_path, None)


def test_a_rollout_that_was_cut_off_before_its_first_record_is_no_success(given: Session, hosts: Fleet) -> None:
    unbegun = places.new(given.root)
    unbegun.mkdir()
    (unbegun / "journal.jsonl").write_text('{"seq":0,')
    for verb in (session.resume, session.abort, session.rollback):
        with pytest.raises(RigError, match="cut off before it began"):
            verb(given, None)
    with pytest.raises(RigError, match="cut off before it began"):
        session.pause(given.root, None)
    assert hosts.touched() == []


def test_a_lock_that_cannot_be_written_is_told(given: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_given: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(RigError, match="nothing can be written where rollouts are kept"):
        session.start(given, WISH)


def test_a_name_that_is_no_rollout_is_not_followed(given: Session) -> None:
    session.start(given, WISH)
    with pytest.raises(RigError, match="there is no rollout"):
        places.find(given.root, "../../etc")


def test_every_new_state_is_shown(tmp_path: Path, hosts: Fleet) -> None:
    shown: list[int] = []
    watch: Callable[[State], None] = lambda told: shown.append(told.records)  # noqa: E731 - typed in one line
    session.start(Session(tmp_path, watch=watch, make_hands=lambda _r, _p, _s: hosts), WISH)
    assert shown == sorted(shown)
    assert shown[-1] == State.read(places.find(tmp_path, None)).records


def test_a_request_left_behind_does_not_stop_the_next(given: Session, hosts: Fleet) -> None:
    killed(given, hosts)
    control.ask(place(given), control.PAUSE)
    assert session.resume(given, None).status == "done"


def test_what_is_taken_up_again_is_shown_as_known_first(given: Session, hosts: Fleet) -> None:
    killed(given, hosts)
    seen: list[tuple[str, int]] = []
    told = session.resume(
        replace(
            given,
            known=lambda state: seen.append(("known", state.records)),
            watch=lambda state: seen.append(("news", state.records)),
        ),
        None,
    )
    assert seen[0][0] == "known"
    assert {kind for kind, _ in seen[1:]} == {"news"}
    assert seen[-1][1] == told.records


def test_a_rollout_that_left_hosts_for_later_is_not_paused_but_resumed(given: Session, hosts: Fleet) -> None:
    hosts.hosts["c"].reachable = False
    told = session.start(given, WISH)
    assert told.status == "incomplete"
    with pytest.raises(RigError, match="nothing to pause") as error:
        session.pause(given.root, None)
    assert "c" in error.value.why
    assert f"rollout resume {told.id}" in error.value.fix
