"""What the user sees of an apply."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from llamarig.cli import apply as verb
from llamarig.cli import apply_view, ask
from llamarig.cli.apply_view import Progress, amount, describe, say_outcome
from llamarig.compare.action import Action
from llamarig.converge.apply import HostApply
from llamarig.converge.decide import Decision
from llamarig.errors import ExitCode, RigError

EDITED = Action("file", "/etc/x[bold]", "was edited on the host", restarts=("chat",))
WANTED = {"llamarig_wanted": {"services": [{"name": "chat", "unit": "llama-chat.service"}]}}
RUNNING = {"units": {"llama-chat.service": {"active": "active"}}}


def host(*actions: Action, **more: Any) -> HostApply:
    restarts = tuple(name for action in actions for name in action.restarts)
    return HostApply("demo", WANTED, RUNNING, Decision(actions, {}, restarts), **more)


@pytest.fixture
def screens(monkeypatch: pytest.MonkeyPatch) -> tuple[io.StringIO, io.StringIO]:
    """Standard output and error, no terminals."""
    outs = io.StringIO(), io.StringIO()
    for name, stream in zip(("out", "err"), outs, strict=True):
        console = Console(file=stream, width=200, highlight=False)
        monkeypatch.setattr(apply_view, name, lambda console=console: console)
    return outs


def test_actions_are_shown_with_their_reasons_and_markup_of_a_host_is_text(screens: Any) -> None:
    describe([host(EDITED), host()])
    shown = screens[0].getvalue()
    assert "demo: 1 action\n" in shown
    assert "file       /etc/x[bold]  was edited on the host" in shown
    assert "demo: 0 actions\n" in shown


def test_the_outcome_of_each_host_is_a_line(screens: Any) -> None:
    error = RigError("it broke", "demo", "[red]words", "mend it", ExitCode.HOST_FAILED)
    checks = [{"ok": True}, {"ok": True}]
    hosts = [host(), host(EDITED, converged=True, changed=3, checks=checks), host(EDITED, error=error)]
    say_outcome(hosts, [], check=False)
    lines = screens[0].getvalue().splitlines()
    assert lines[0].startswith("demo: nothing to do, 0 actions (")
    assert lines[1].startswith("demo: done, 1 action, 3 changed, 2 of 2 checks passed (")
    assert lines[2].startswith("demo: failed (")
    assert "[red]words" in screens[1].getvalue()
    assert "fix: mend it" in screens[1].getvalue()


def test_a_check_says_that_nothing_was_touched(screens: Any) -> None:
    say_outcome([host(EDITED)], [], check=True)
    assert "1 to do, nothing was touched" in screens[0].getvalue()


def test_a_new_key_is_shown_once_on_a_line_of_its_own(screens: Any) -> None:
    progress = Progress()
    progress(
        {"event": "key", "host": "demo", "service": "chat", "client": "ada", "key": "s3cret-" + "x" * 40, "path": "/k"}
    )
    assert "s3cret" not in screens[1].getvalue()
    say_outcome([host()], progress.keys, check=False)
    assert screens[0].getvalue().splitlines().count("s3cret-" + "x" * 40) == 1
    assert "root finds it again in /k on demo" in screens[0].getvalue()


def test_away_from_a_terminal_long_steps_are_said_at_each_quarter(screens: Any) -> None:
    with Progress() as progress:
        for done in range(401):
            progress(
                {"event": "progress", "host": "demo", "label": "build", "done": done, "total": 400, "unit": "steps"}
            )
        progress({"event": "result", "host": "demo", "task": "Make it", "status": "changed"})
        progress({"event": "result", "host": "demo", "task": "Look", "status": "ok"})
        progress({"event": "nonsense"})
    lines = screens[1].getvalue().splitlines()
    assert [line.partition("build ")[2] for line in lines[:-1]] == [f"{n}/400 steps" for n in (0, 100, 200, 300, 400)]
    assert lines[-1].endswith("demo: Make it: changed")


def test_a_taken_over_lock_is_said(screens: Any) -> None:
    result = {"taken_over": "its lease ran out", "holder": {"who": "ada", "from": "desk\x1b[2J"}}
    Progress()({"event": "result", "host": "demo", "status": "ok", "result": result})
    assert "took over the lock of ada on desk[2J: its lease ran out" in screens[1].getvalue()


def test_on_a_terminal_there_is_one_live_row_a_host(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    console = Console(file=stream, width=120, force_terminal=True)
    monkeypatch.setattr(apply_view, "err", lambda: console)
    with Progress() as progress:
        for name in ("one", "two"):
            progress({"event": "start", "host": name, "task": "Observe the host"})
            progress({"event": "progress", "host": name, "label": "build", "done": 3, "total": 4, "unit": "steps"})
        assert progress.rows == 2
    assert "3/4 steps" in stream.getvalue()


def test_a_narrow_terminal_keeps_the_clock_and_shows_no_bar_without_a_total(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(apply_view, "err", lambda: Console(file=stream, width=80, force_terminal=True))
    with Progress() as progress:
        progress({"event": "start", "host": "demo", "task": "A step with a long name, " * 8})
        progress({"event": "start", "host": "demo", "task": "Validating arguments against arg spec main"})
    shown = stream.getvalue()
    assert "0:00:0" in shown
    assert "A step with a long" in shown
    assert "━" not in shown
    assert "Validating" not in shown


def test_packages_are_counted_while_they_are_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(apply_view, "err", lambda: Console(file=stream, width=80, force_terminal=True))
    with Progress() as progress:
        progress.packages = {"demo": 8}
        progress({"event": "start", "host": "demo", "task": "Install the packages"})
    assert "downloading and installing 8 packages" in stream.getvalue()
    assert host(Action("package", "cmake", "is not installed"), EDITED).packages == 1


def test_a_ctrl_c_says_what_it_leaves_behind() -> None:
    with pytest.raises(RigError, match="half changed") as said, ask.interrupted_by_hand(["demo"], "apply"):
        raise KeyboardInterrupt
    assert "same apply again" in said.value.fix
    assert said.value.code == ExitCode.HOST_FAILED


def test_bytes_are_shown_as_mebibytes() -> None:
    assert amount(49181216, 98362432, "bytes") == "46.9/93.8 MiB"
    assert amount(1, 0, "steps") == ""


def test_a_restart_needs_a_yes_and_without_a_terminal_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ask.sys, "stdin", io.StringIO())
    with pytest.raises(RigError, match="chat on demo") as refused:
        verb.ask_restart([host(EDITED)])
    assert "--yes" in refused.value.fix
    assert refused.value.code == ExitCode.BAD_INPUT
    stopped = host(EDITED)
    stopped.observed = {"units": {"llama-chat.service": {"active": "inactive"}}}
    verb.ask_restart([stopped])
    verb.ask_restart([host()])


@pytest.mark.parametrize(("answer", "goes_on"), [(True, True), (False, False)])
def test_no_means_no(monkeypatch: pytest.MonkeyPatch, answer: bool, goes_on: bool) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(ask.sys, "stdin", Terminal())
    monkeypatch.setattr(ask.typer, "confirm", lambda *_args, **_more: answer)
    if goes_on:
        verb.ask_restart([host(EDITED)])
    else:
        with pytest.raises(RigError, match="nothing was touched"):
            verb.ask_restart([host(EDITED)])


def test_the_json_form_has_the_documented_keys() -> None:
    error = RigError("it broke", "demo", "why", "fix")
    document = host(EDITED, error=error).to_json()
    assert set(document) == {"host", "actions", "changed", "ok", "error", "refused", "checks", "seconds"}
    assert document["ok"] is False
    assert document["error"] == {"what": "it broke", "where": "demo", "why": "why", "fix": "fix"}
    assert document["actions"][0]["subject"] == "/etc/x[bold]"
