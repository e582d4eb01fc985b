"""drift, diff and status: documented JSON, exit codes, and nothing hostile on the terminal."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import typer

from llamarig.cli import choose, looked
from llamarig.cli.diff import diff
from llamarig.cli.drift import drift
from llamarig.cli.status import status
from llamarig.errors import ExitCode, RigError
from tests.support.compare.cases import RELEASE, UNIT, Case, bare_observation, sha, wanted_state

RECORDED = {
    "state": "ok",
    "applied-at": "2026-11-29T16:00:00Z",
    "applied-from": "desk",
    "llamarig": "0.1.0",
    "run": "r1",
}
ESCAPE = "\x1b[2J[bold]x[/]"
AWAY = RigError(what="cannot be reached", where="away", why=f"ssh: {ESCAPE}", fix="wake it", code=ExitCode.HOST_FAILED)


def edited() -> Case:
    case = Case()
    case.observed["files"][UNIT] |= {
        "sha256": sha("edited"),
        "lines": ["[Service]", f"ExecStart={ESCAPE}", "X=--api-key sk-1"],
    }
    return case


def seen(*hosts: looked.Looked) -> Callable[..., list[looked.Looked]]:
    return lambda *_args, **_options: list(hosts)


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run a verb over hosts that were looked at; exit code, output, errors."""

    def run(verb: Callable[..., None], *hosts: looked.Looked, **options: Any) -> tuple[int, str, str]:
        monkeypatch.setattr(looked, "look", seen(*hosts))
        with pytest.raises(typer.Exit) as caught:
            verb(["demo"], **options)
        written = capsys.readouterr()
        for text in (written.out, written.err):
            assert all(ch == "\n" or unicodedata.category(ch)[0] != "C" for ch in text), ascii(text)
        return caught.value.exit_code, written.out, written.err

    return run


def host(case: Case) -> looked.Looked:
    return looked.judged(case.wanted, case.observed)


def test_drift_of_a_converged_host_is_empty(start: Any) -> None:
    code, out, _ = start(drift, host(Case()), json_=True)
    assert (code, json.loads(out)) == (0, {"host": "demo", "drift": [], "record": RECORDED})
    code, out, _ = start(drift, host(Case()))
    assert (code, out) == (0, "demo: as its spec says\n")


def test_drift_names_each_difference(start: Any) -> None:
    code, out, _ = start(drift, host(edited()), json_=True)
    assert code == 1
    assert json.loads(out) == {
        "host": "demo",
        "drift": [
            {
                "subject": UNIT,
                "expected": f"sha256 {edited().wanted.files[1].sha256[:12]}",
                "observed": f"sha256 {sha('edited')[:12]}",
                "reason": "file: was edited on the host",
                "since": {"after": "2026-11-29T16:00:00Z", "before": None, "by": "", "cause": "host"},
            }
        ],
        "record": RECORDED,
    }
    code, out, _ = start(drift, host(edited()))
    assert "1 difference" in out
    assert "llama-chat.service" in out.replace("\n", "")


def test_diff_shows_what_apply_would_do_and_the_changed_lines(start: Any) -> None:
    code, out, _ = start(diff, host(edited()))
    assert code == 1
    assert "Files to write or remove" in out
    assert "-ExecStart=\\x1b[2J[bold]x[/]" in out
    assert "+ExecStart=chat" in out
    assert "Starts or restarts: chat" in out
    assert "sk-1" not in out
    code, out, _ = start(diff, host(edited()), json_=True)
    document = json.loads(out)
    assert [action["kind"] for action in document["actions"]] == ["file"]
    assert document["restarts"] == ["chat"]
    assert "+ExecStart=chat" in document["actions"][0]["diff"]
    assert "sk-1" not in out


def test_diff_of_a_fresh_host_groups_everything_and_shows_new_files_only_when_asked(start: Any) -> None:
    wanted = wanted_state()
    fresh = looked.judged(wanted, bare_observation(wanted))
    code, out, _ = start(diff, fresh)
    assert code == 1
    assert out.index("Packages to install") < out.index("Releases to build") < out.index("Records to write")
    assert "+ExecStart=chat" not in out
    assert "+ExecStart=chat" in start(diff, fresh, full=True)[1]
    assert start(diff, host(Case()))[:2] == (0, "demo: nothing to do\n")


def test_status_says_what_runs_since_when_and_from_which_release(start: Any) -> None:
    code, out, _ = start(status, host(Case()), json_=True)
    document = json.loads(out)
    assert code == 0
    assert document["release"] == {"current": RELEASE, "former": None, "former-at": None, "wanted": RELEASE}
    assert document["record"]["applied-at"] == "2026-11-29T16:00:00Z"
    assert document["drift"] == 0
    assert document["services"]["chat"] == {
        "unit": "llama-chat.service",
        "load": "loaded",
        "state": "active",
        "sub-state": "running",
        "enabled": True,
        "since": "2026-09-21T14:13:20Z",
        "restarts": 0,
        "main-pid": 812,
        "release": RELEASE,
        "model": "chat",
        "model-sha256": sha("model"),
        "address": "127.0.0.1:8080",
    }
    code, out, _ = start(status, host(Case()))
    assert "active (running)" in out
    assert "applied 2026-11-29T16:00:00Z from desk; as its spec says" in out


def test_status_of_a_host_that_was_never_touched(start: Any) -> None:
    wanted = wanted_state()
    fresh = looked.judged(wanted, bare_observation(wanted))
    code, out, _ = start(status, fresh)
    assert code == 0
    assert "release none; never applied; 15 to do (llamarig diff demo)" in out
    assert "not-found" in out
    document = json.loads(start(status, fresh, json_=True)[1])
    assert document["release"]["current"] is None
    assert document["services"]["chat"]["since"] is None


def test_status_shows_who_holds_the_lock(start: Any) -> None:
    case = Case()
    case.observed["lock"] = {"who": f"anna{ESCAPE}", "from": "desk", "run": "r1", "since": 1, "age-s": 3}
    said = "locked by anna\\x1b[2J[bold]x[/] on desk since 1970-01-01T00:00:01Z"
    assert said in start(status, host(case))[1]
    document = json.loads(start(status, host(case), json_=True)[1])
    assert document["lock"] == {
        "who": "anna\\x1b[2J[bold]x[/]",
        "from": "desk",
        "run": "r1",
        "pid": None,
        "since": "1970-01-01T00:00:01Z",
    }


def test_status_shows_a_lock_that_nobody_can_read(start: Any) -> None:
    case = Case()
    case.observed["lock"] = {"error": f"is a fifo{ESCAPE}"}
    assert "locked: is a fifo\\x1b[2J[bold]x[/]" in start(status, host(case))[1]


@pytest.mark.parametrize(("verb", "key"), [(drift, "drift"), (diff, "actions"), (status, None)])
def test_a_host_that_is_away_is_named_beside_the_others_and_gives_the_highest_code(
    start: Any, verb: Callable[..., None], key: str | None
) -> None:
    away = looked.Looked("away", error=AWAY)
    code, out, err = start(verb, host(edited()), away, json_=True)
    assert code == 3
    first, second = json.loads(out)["hosts"]
    assert first["host"] == "demo"
    assert second["error"]["what"] == "cannot be reached"
    assert key is None or second[key] == []
    assert "away: cannot be reached" in err
    assert "away: away" not in err
    assert "wake it" in err
    code, out, err = start(verb, host(Case()), away)
    assert code == 3
    assert "demo" in out
    assert "\\x1b[2J[bold]x[/]" in err


def test_looking_keeps_the_order_and_each_hosts_own_error(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["unplanned", "demo", "away", "strange"]
    loaded = [SimpleNamespace(host=name) for name in names]
    case = Case()

    def wanted_for(_root: Any, host: Any) -> Any:
        if host.host == "unplanned":
            raise RigError(what="no chat template", where=host.host)
        return case.wanted

    def observe_hosts(
        _root: Any, hosts: list[Any], wanted: dict[str, Any], *, deep: bool, **_more: Any
    ) -> dict[str, Any]:
        assert [each.host for each in hosts] == ["demo", "away", "strange"]
        assert set(wanted) == {"demo", "away", "strange"}
        assert deep
        return {"demo": case.observed, "away": AWAY, "strange": {"schema": 99}}

    monkeypatch.setattr(choose, "choose", lambda *_: loaded)
    monkeypatch.setattr("llamarig.converge.wanted.wanted_for", wanted_for)
    monkeypatch.setattr("llamarig.converge.observe.observe_hosts", observe_hosts)
    found = looked.look([], True, "drift", deep=True)
    assert [each.error.what if each.error else len(each.actions) for each in found] == [
        "no chat template",
        0,
        "cannot be reached",
        "the host's observation is malformed",
    ]
    assert [int(each.code) for each in found] == [2, 0, 3, 3]


def test_a_service_that_runs_another_release_than_the_current_one_is_shown_so(start: Any) -> None:
    case = Case()
    case.process()["exe"] = "/opt/llamarig/releases/older/bin/llama-server"
    assert "active (running), runs older" in start(status, host(case))[1]


def test_a_stopped_service_shows_when_it_stopped(start: Any) -> None:
    case = Case()
    case.observed["units"]["llama-chat.service"] |= {"active": "failed", "started": 1790000000, "stopped": 1790000060}
    document = json.loads(start(status, host(case), json_=True)[1])
    assert document["services"]["chat"]["since"] == "2026-09-21T14:14:20Z"


def test_drift_away_from_a_terminal_is_a_line_each_without_trailing_blanks(start: Any) -> None:
    wanted = wanted_state()
    bare = looked.judged(wanted, bare_observation(wanted))
    lines = start(drift, bare)[1].splitlines()
    assert len(lines) == 1 + len(bare.actions)
    assert [line for line in lines if line != line.rstrip()] == []
    assert any(line.endswith("is not there") for line in lines)
