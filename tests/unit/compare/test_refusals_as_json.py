"""With ``--json`` a command that refuses prints one document that says why; in words it says so as well."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from llamarig.cli import context, main
from llamarig.cli.context import emit_json
from llamarig.errors import RigError, RigErrors

SPEC = """\
schema-version: 1
host: {host}
os: {{distribution: debian, release: "13"}}
engine: {{commit: 4df29be4f, build-number: 10454, source: {{sdist: x==1, sha256: unlocked}}, backend: cpu}}
models:
  tiny: {{controller-path: tiny.gguf, sha256: unlocked, size: unlocked}}
services:
  chat: {{model: tiny, context: 4096, listen: {{port: 8080}}}}
"""


@pytest.fixture(autouse=True)
def own_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "_printed", False)
    context._console.cache_clear()


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr("sys.argv", ["llamarig", *words])
    with pytest.raises(SystemExit) as ended:
        main.main()
    return int(str(ended.value.code))


@pytest.fixture
def project(tmp_path: Path) -> str:
    (tmp_path / "box.yml").write_text(SPEC.format(host="box"))
    return str(tmp_path)


def test_an_apply_that_refuses_says_all_reasons(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], project: str
) -> None:
    assert run(monkeypatch, "-C", project, "apply", "box", "--json") == 2
    written = capsys.readouterr()
    data = json.loads(written.out)
    assert set(data) == {"error", "errors"}
    assert data["error"] == data["errors"][0]
    assert {each["what"] for each in data["errors"]} >= {
        "`engine.source.sha256` is still `unlocked`",
        "`models.tiny.sha256` is still `unlocked`",
    }
    assert all(set(each) == {"what", "where", "why", "fix"} for each in data["errors"])
    assert "still `unlocked`" in written.err


def test_an_unknown_host_is_one_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], project: str
) -> None:
    assert run(monkeypatch, "-C", project, "drift", "bux", "--json") == 2
    data = json.loads(capsys.readouterr().out)
    assert data["error"]["fix"] == "did you mean box?"
    assert len(data["errors"]) == 1


def test_without_json_nothing_is_on_standard_output(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], project: str
) -> None:
    assert run(monkeypatch, "-C", project, "apply", "box") == 2
    assert capsys.readouterr().out == ""


def test_a_document_that_was_printed_stays_the_only_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def half(**_named: object) -> None:
        emit_json({"hosts": []})
        raise RigErrors([RigError("one is left open")])

    monkeypatch.setattr(main, "app", half)
    assert run(monkeypatch, "lock", "--json") == 2
    written = capsys.readouterr()
    assert json.loads(written.out) == {"hosts": []}
    assert "one is left open" in written.err
