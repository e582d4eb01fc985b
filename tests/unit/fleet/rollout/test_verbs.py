"""The verbs as commands: what they print, how they end, and what they refuse before anything is touched."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from llamarig.cli import main
from llamarig.errors import RigError
from llamarig.fleet.in_use import UseGate
from llamarig.fleet.rollout import control, places, session
from llamarig.fleet.rollout.lock import fleet_lock, holder, whole_fleet
from llamarig.fleet.rollout.session import Session, Start
from llamarig.fleet.rollout.state import State, Wave
from llamarig.spec.overlay import read_overlay
from tests.unit.fleet.rollout.stand_in import Fleet, Killed, Machinery

ROOT = Path(__file__).resolve().parents[4]
WISH = Start([Wave("canary", ["a"]), Wave("wave 1", ["b"])], {"canary": 1, "failures": 0}, {})


def rig(root: Path, *arguments: str) -> int:
    return main._run(["-C", str(root), *arguments])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "inventory").mkdir()
    spec = yaml.safe_load((ROOT / "inventory" / "demo.yml").read_text())
    for name in ("a", "b"):
        given = spec | {"host": name, "connection": {"address": "192.0.2.1"}}
        (tmp_path / "inventory" / f"{name}.yml").write_text(yaml.safe_dump(given))
    return tmp_path


@pytest.fixture
def began(monkeypatch: pytest.MonkeyPatch) -> list[Session]:
    """The sessions in which a rollout was begun, over a fleet that is none."""
    given: list[Session] = []
    begin = session.start

    def start(with_it: Session, wish: Start) -> State:
        given.append(with_it)
        hosts = Fleet({name: Machinery() for name in wish.hosts})
        return begin(replace(with_it, make_hands=lambda _r, _p, _s: hosts, gate=session.no_gate), wish)

    monkeypatch.setattr(session, "start", start)
    return given


def rolled(project: Path, **bad: Machinery) -> Fleet:
    hosts = Fleet({name: bad.get(name, Machinery()) for name in ("a", "b")})
    session.start(Session(project, make_hands=lambda _r, _p, _s: hosts), WISH)
    return hosts


def test_status_prints_the_state_and_ends_as_it_does(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rolled(project)
    assert rig(project, "rollout", "status", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["status"] == "done"
    assert told["driver"] is None
    assert told["hosts"]["b"]["phase"] == "done"
    assert set(told["hosts"]["b"]) == {
        *("phase", "reason", "from-release", "to-release", "checks", "seconds", "actions"),
        *("between", "failed", "reboot"),
    }
    assert rig(project, "rollout", "status") == 0
    assert "canary" in capsys.readouterr().out


def test_status_of_a_stopped_rollout_ends_with_3(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rolled(project, a=Machinery(bad=True))
    assert rig(project, "rollout", "status") == 3
    said = capsys.readouterr().out
    assert "Prove failed" in said


def test_a_rollout_that_was_cut_off_says_so(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hosts = Fleet({"a": Machinery(), "b": Machinery()})
    hosts.on_apply = lambda: (_ for _ in ()).throw(Killed())
    with pytest.raises(Killed):
        session.start(Session(project, make_hands=lambda _r, _p, _s: hosts), WISH)
    assert rig(project, "rollout", "status", "--json") == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["status"], told["driver"], told["hosts"]["a"]["between"]) == ("running", None, True)
    assert rig(project, "rollout", "start", "--all", "--yes") == 2
    assert "was cut off" in capsys.readouterr().err
    assert rig(project, "rollout", "pause", "--json") == 1
    assert json.loads(capsys.readouterr().out)["status"] == "paused"


def test_nothing_is_begun_without_a_yes(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert rig(project, "rollout", "start", "--all") == 2
    assert "give --yes" in capsys.readouterr().err
    assert places.known(project) == []


def test_bad_specs_alone_begin_nothing(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b"):
        (project / "inventory" / f"{name}.yml").write_text(f"host: {name}\nno-such-key: 1\n")
    assert rig(project, "rollout", "start", "--all", "--yes", "--json") == 2
    assert "no-such-key" in capsys.readouterr().err
    assert places.known(project) == []


def test_a_bad_spec_is_told_first_and_stops_no_other_host(
    project: Path, capsys: pytest.CaptureFixture[str], began: list[Session]
) -> None:
    (project / "inventory" / "b.yml").write_text("host: b\nno-such-key: 1\n")
    assert rig(project, "rollout", "start", "--all") == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "a rollout over 1 host, without b, refused above" in said
    assert began == []
    assert rig(project, "rollout", "start", "--all", "--yes", "--json") == 2
    told = capsys.readouterr()
    assert "no-such-key" in told.err
    hosts = json.loads(told.out)["hosts"]
    assert {name: host["phase"] for name, host in hosts.items()} == {"a": "done", "b": "refused"}
    assert hosts["b"]["reason"]
    assert len(began) == 1


def test_what_is_over_is_not_resumed(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rolled(project)
    assert rig(project, "rollout", "resume", "--yes") == 2
    assert "is over" in capsys.readouterr().err
    assert rig(project, "rollout", "abort", "--yes") == 2


def test_abort_asks_a_rollout_that_runs(project: Path) -> None:
    hosts = Fleet({"a": Machinery(), "b": Machinery()})
    codes: list[int] = []
    hosts.on_apply = lambda: codes.append(rig(project, "rollout", "abort", "--json"))
    told = session.start(Session(project, make_hands=lambda _r, _p, _s: hosts), WISH)
    assert codes == [1]
    assert told.status == "aborted"
    assert control.asked(places.find(project, None)) == ""


WHOLE_FLEET = [("apply",), ("rebuild",), ("rollback",), ("drift", "--fix")]


@pytest.mark.parametrize("verb", WHOLE_FLEET, ids=" ".join)
def test_what_changes_all_hosts_waits_for_a_rollout(
    project: Path, capsys: pytest.CaptureFixture[str], verb: tuple[str, ...]
) -> None:
    with fleet_lock(project, "start"):
        assert rig(project, *verb, "--all", "--yes") == 2
    assert "a rollout of this project is running" in capsys.readouterr().err


@pytest.mark.parametrize("verb", WHOLE_FLEET, ids=" ".join)
def test_no_rollout_begins_while_all_hosts_are_changed(
    project: Path, monkeypatch: pytest.MonkeyPatch, verb: tuple[str, ...]
) -> None:
    held: list[dict[str, Any] | None] = []

    def choose(*_: object) -> None:
        held.append(holder(project))
        raise RigError("enough seen")

    monkeypatch.setattr("llamarig.cli.choose.choose", choose)
    assert rig(project, *verb, "--all", "--yes") == 2
    assert [(who or {}).get("command") for who in held] == [" ".join((verb[0], "--all", *verb[1:]))]
    assert holder(project) is None


def test_a_single_host_holds_its_own_lock_alone(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[dict[str, Any] | None] = []

    def choose(*_: object) -> None:
        held.append(holder(project))
        raise RigError("enough seen")

    monkeypatch.setattr("llamarig.cli.choose.choose", choose)
    assert rig(project, "apply", "a", "--yes") == 2
    assert held == [None]


def test_the_fleet_s_holder_is_named_and_drives_no_rollout(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rolled(project)
    with whole_fleet(project, "apply --all"):
        assert session.driver(project, State.read(places.find(project, None))) is None
        assert rig(project, "rollout", "start", "--all", "--yes") == 2
    said = capsys.readouterr().err
    assert "the whole fleet of this project is being worked on" in said
    assert "`apply --all` of" in said


@pytest.mark.parametrize("verb", WHOLE_FLEET, ids=" ".join)
def test_nothing_is_made_where_no_project_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: tuple[str, ...]
) -> None:
    assert rig(tmp_path, *verb, "--all", "--yes") == 2
    assert "a file cannot be used" not in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_holder_is_seen_where_nobody_may_write(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    really = os.open

    def read_only(path: Any, flags: int, *rest: Any, **named: Any) -> int:
        if str(path).endswith("rollouts/lock") and flags & (os.O_RDWR | os.O_WRONLY):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
        return really(path, flags, *rest, **named)

    with fleet_lock(project, "start"):
        monkeypatch.setattr(os, "open", read_only)
        assert (holder(project) or {}).get("verb") == "start"
    assert holder(project) is None


def test_a_project_in_which_nobody_may_write_can_still_be_applied(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(root: Path) -> Path:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(root))

    monkeypatch.setattr("llamarig.fleet.rollout.lock.home", refused)
    seen: list[bool] = []

    def choose(*_: object) -> None:
        seen.append(True)
        raise RigError("enough seen")

    monkeypatch.setattr("llamarig.cli.choose.choose", choose)
    assert rig(project, "apply", "--all", "--yes") == 2
    assert seen == [True]


def test_hostile_words_of_a_host_do_not_steer_the_terminal(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hosts = Fleet({"a": Machinery(locked="\x1b]0;owned\x07[bold]kim[/]"), "b": Machinery()})
    session.start(Session(project, make_hands=lambda _r, _p, _s: hosts), WISH)
    assert rig(project, "rollout", "status") == 1
    said = capsys.readouterr().out
    assert "\x1b]0" not in said
    assert "[bold]kim[/]" in said


def test_a_page_replaces_no_file_of_the_user_s(project: Path) -> None:
    rolled(project)
    page, spec = project / "page.html", project / "inventory" / "a.yml"
    before = spec.read_bytes()
    assert rig(project, "rollout", "status", "--html", str(spec)) == 2
    assert spec.read_bytes() == before
    for _ in range(2):
        assert rig(project, "rollout", "status", "--html", str(page)) == 0
    assert "Rollout" in page.read_text()


def test_a_rollout_that_runs_refuses_a_second_as_input(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with fleet_lock(project, "start"):
        assert rig(project, "rollout", "start", "--all", "--yes") == 2
    assert "a rollout of this project is running" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["resume", "abort", "rollback"])
@pytest.mark.parametrize("name", [[], ["nix"]])
def test_the_rollout_is_found_before_anybody_is_asked(
    project: Path, capsys: pytest.CaptureFixture[str], verb: str, name: list[str]
) -> None:
    assert rig(project, "rollout", verb, *name) == 2
    assert "this project has no rollout" in capsys.readouterr().err
    rolled(project)
    assert rig(project, "rollout", verb, "nix") == 2
    said = capsys.readouterr().err
    assert "there is no rollout 'nix'" in said
    assert "give --yes" not in said


def test_the_question_of_a_way_back_names_the_rollout_and_its_hosts(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rolled(project)
    assert rig(project, "rollout", "rollback") == 2
    said = " ".join(capsys.readouterr().err.split())
    assert f"the rollout {places.find(project, None).name} is taken back: 2 hosts go back (b, a)" in said


def test_a_rollout_that_changed_nothing_is_not_taken_back(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rolled(project, a=Machinery(release="new"), b=Machinery(release="new"))
    assert rig(project, "rollout", "rollback", "--yes") == 2
    assert "nothing to take back" in capsys.readouterr().err
    assert rig(project, "rollout", "status", "--json") == 0
    assert json.loads(capsys.readouterr().out)["status"] == "done"


def laid(project: Path, context: int) -> str:
    path = project / f"laid-{context}.yml"
    entry = {"key": "services.chat.context", "value": context, "reason": "a small machine", "unproven": ""}
    path.write_text(yaml.safe_dump({"schema-version": 1, "host": "a", "replace": [entry]}))
    return str(path)


def test_a_start_takes_the_overlay_that_it_is_given(project: Path, began: list[Session]) -> None:
    assert rig(project, "--overlay", laid(project, 2048), "rollout", "start", "--all", "--yes") == 0
    (one,) = began
    assert one.overlay is not None
    assert one.overlay.host == "a"
    assert isinstance(one.gate, UseGate)
    assert one.gate.overlay is one.overlay


def test_a_rollout_goes_on_with_the_overlay_that_it_was_begun_with(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, other = laid(project, 2048), laid(project, 1024)
    hosts = Fleet({"a": Machinery(), "b": Machinery()})
    session.start(Session(project, make_hands=lambda _r, _p, _s: hosts, overlay=read_overlay(Path(first))), WISH)
    assert rig(project, "rollout", "rollback", "--yes") == 2
    said = capsys.readouterr().err
    assert "begun with an overlay" in said
    assert f"llamarig --overlay {first} rollout rollback" in " ".join(said.split())
    assert rig(project, "--overlay", other, "rollout", "rollback", "--yes") == 2
    assert "begun with another overlay" in capsys.readouterr().err
    assert rig(project, "--overlay", first, "rollout", "rollback") == 2
    assert "give --yes" in capsys.readouterr().err


def test_a_rollout_without_an_overlay_takes_none_later(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rolled(project)
    assert rig(project, "--overlay", laid(project, 2048), "rollout", "rollback", "--yes") == 2
    assert "begun without an overlay" in capsys.readouterr().err


@pytest.mark.parametrize(("verb", "after"), [("pause", "goes on"), ("abort", "nothing goes on from there")])
def test_what_is_asked_of_a_rollout_that_runs_is_said(
    project: Path, capsys: pytest.CaptureFixture[str], verb: str, after: str
) -> None:
    hosts = Fleet({"a": Machinery(), "b": Machinery()})
    hosts.on_apply = lambda: (rig(project, "rollout", verb), rig(project, "rollout", "status", "--json"), None)[2]
    session.start(Session(project, make_hands=lambda _r, _p, _s: hosts), WISH)
    told = capsys.readouterr()
    assert f"asked to {verb}: a finished first; then it stops, and" in told.err
    assert after in told.err
    assert f"running, asked to {verb}" in told.out
    assert f'"asked": "{verb}"' in told.out
    assert rig(project, "rollout", "status", "--json") == 1
    assert json.loads(capsys.readouterr().out)["asked"] == ""


def test_a_pause_of_what_nobody_drives_is_said(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hosts = Fleet({"a": Machinery(), "b": Machinery()})
    hosts.on_apply = lambda: (_ for _ in ()).throw(Killed())
    with pytest.raises(Killed):
        session.start(Session(project, make_hands=lambda _r, _p, _s: hosts), WISH)
    assert rig(project, "rollout", "pause") == 1
    assert "paused; llamarig rollout resume" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["start", "--all"], ["resume"], ["rollback"]])
def test_nobody_is_asked_while_another_process_rolls(
    project: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    rolled(project, b=Machinery(reachable=False))
    with fleet_lock(project, "start"):
        assert rig(project, "rollout", *words) == 2
    said = capsys.readouterr().err
    assert "a rollout of this project is running" in said
    assert "give --yes" not in said


def test_nobody_is_asked_to_begin_one_beside_one_that_was_paused(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hosts = Fleet({"a": Machinery(), "b": Machinery()})
    hosts.on_apply = lambda: control.ask(places.find(project, None), control.PAUSE)
    session.start(Session(project, make_hands=lambda _r, _p, _s: hosts), WISH)
    assert rig(project, "rollout", "start", "--all") == 2
    said = capsys.readouterr().err
    assert "is paused" in said
    assert "give --yes" not in said


def test_a_refused_spec_whose_name_no_journal_keeps_begins_nothing(
    project: Path, capsys: pytest.CaptureFixture[str], began: list[Session]
) -> None:
    (project / "inventory" / "b.yml").write_text('host: "b\\u200bb\\nc"\nno-such-key: 1\n')
    assert rig(project, "rollout", "start", "--all", "--yes") == 2
    assert "no-such-key" in capsys.readouterr().err
    assert began == []
    assert places.known(project) == []
