"""The verb ``verify``: its JSON, its table and its exit codes."""

from __future__ import annotations

import json
from typing import Any

import pytest
import typer

from llamarig.cli import choose, context, verify
from llamarig.converge.run import HostOutcome, Run
from llamarig.errors import ExitCode, RigError
from llamarig.prove import Check
from llamarig.prove.host import NO_RELEASE
from llamarig.prove.hosts import read_proof

GOOD = Check("chat/health", True, "200")
BAD = Check("chat/key", False, "without a key the server says 200")
BLOCKED = Check("chat/build", False, "not checked, because chat/key failed", "chat/key")
AWAY = RigError("the host cannot be reached", "b", "no route", "is it on?", ExitCode.HOST_FAILED)


def run(monkeypatch: pytest.MonkeyPatch, proofs: dict[str, Any], **options: Any) -> int:
    monkeypatch.setattr("llamarig.prove.hosts.prove_hosts", lambda *_words, **_named: proofs)
    monkeypatch.setattr(choose, "choose", lambda hosts, *_words: hosts)
    context._console.cache_clear()
    with pytest.raises(typer.Exit) as ended:
        verify.verify(list(proofs), **options)
    context._console.cache_clear()
    return int(ended.value.exit_code)


@pytest.mark.parametrize(
    ("proofs", "code"),
    [
        ({"a": [GOOD]}, 0),
        ({"a": [GOOD, BAD, BLOCKED]}, 1),
        ({"a": [GOOD], "b": AWAY}, 3),
        ({"a": [BAD], "b": AWAY}, 3),
        ({"a": [GOOD], "b": [BAD]}, 1),
    ],
)
def test_exit_codes(monkeypatch: pytest.MonkeyPatch, proofs: dict[str, Any], code: int) -> None:
    assert run(monkeypatch, proofs) == code


def test_json_of_one_host_is_the_documented_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(monkeypatch, {"a": [GOOD, BLOCKED]}, json_=True)
    assert json.loads(capsys.readouterr().out) == {
        "host": "a",
        "checks": [
            {"name": "chat/health", "ok": True, "detail": "200", "blocked-by": None},
            {"name": "chat/build", "ok": False, "detail": BLOCKED.detail, "blocked-by": "chat/key"},
        ],
    }


def test_json_of_several_hosts_is_a_list_and_an_error_has_its_place(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(monkeypatch, {"a": [GOOD], "b": AWAY}, json_=True)
    data = json.loads(capsys.readouterr().out)
    assert [each["host"] for each in data["hosts"]] == ["a", "b"]
    assert data["hosts"][1]["checks"] == []
    assert data["hosts"][1]["error"]["what"] == "the host cannot be reached"


def test_the_table_shows_red_first(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    run(monkeypatch, {"a": [GOOD, BLOCKED, BAD]})
    said = capsys.readouterr().out
    assert "1 of 3 checks failed, 1 not checked" in said
    assert "not checked  chat/build   because chat/key failed" in said
    assert said.index("chat/key") < said.index("chat/build") < said.index("chat/health")


def test_a_host_never_applied_says_so_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    bare = [Check("host/current", False, NO_RELEASE), Check("chat/unit", False, "llama-chat.service does not exist")]
    assert run(monkeypatch, {"a": bare}) == 1
    assert capsys.readouterr().out == ("a: 2 of 2 checks failed\n  never applied: run `llamarig apply a`\n")
    run(monkeypatch, {"a": [*bare, GOOD]})
    assert "never applied" not in capsys.readouterr().out


def test_away_from_a_terminal_a_check_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    detail = "a sentence that is much longer than the eighty columns " * 4
    run(monkeypatch, {"a": [Check("chat/key", False, detail.strip())]})
    [line] = [line for line in capsys.readouterr().out.splitlines() if "chat/key" in line]
    assert detail.strip() in line


def test_a_run_without_an_answer_is_a_failed_host() -> None:
    proof = read_proof(Run(4, {"a": HostOutcome()}, "ERROR! something"), "a")
    assert isinstance(proof, RigError)
    assert proof.code == ExitCode.HOST_FAILED
    assert "something" in proof.why


def test_red_checks_are_read_although_the_task_failed() -> None:
    outcome = HostOutcome(results={"rig_prove": {"failed": True, "checks": [BAD.to_json()]}})
    outcome.failures.append({"task": "Prove", "status": "failed", "result": {"msg": "the proof failed"}})
    assert read_proof(Run(2, {"a": outcome}), "a") == [BAD]
