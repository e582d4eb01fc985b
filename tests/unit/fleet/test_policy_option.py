"""`--canary` and `--failures` take what the keys of a fleet.yml take, and refuse the rest in their words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from llamarig.cli import context, main
from llamarig.spec.fleet import Fleet, read_fleet

VALUES = ["-1", "1001", "10001", "1.5", "many", "٣", "1_0", "true", "[1]", "9" * 30]


@pytest.fixture(autouse=True)
def _nothing_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "_printed", False)


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize(("verb", "key"), [("start", "canary"), ("start", "failures"), ("plan", "canary")])
def test_an_option_is_refused_as_its_key_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: str, key: str, value: str
) -> None:
    given = json.dumps(value) if value == "[1]" else value  # a list in a file, and never one behind an option
    (tmp_path / "fleet.yml").write_text(f"schema-version: 1\nrollout:\n  {key}: {given}\n")
    in_file = read_fleet(tmp_path / "fleet.yml", Fleet(), tmp_path).own_errors
    code = main._run(["-C", str(tmp_path), "rollout", verb, "--all", f"--{key}={value}", "--json"])
    assert code == 2
    told = capsys.readouterr().out
    if not in_file:
        assert (key, value) == ("failures", "1001")
        assert "Invalid value" not in told
        return
    message = in_file[0].message.replace("`rollout.", "`")
    assert json.loads(told)["error"]["what"] == f"Invalid value for '--{key}': {message}; {in_file[0].fix}"


@pytest.mark.parametrize("given", [["--canary", "1000"], ["--canary=0", "--failures", "10000"]])
def test_a_value_within_the_limits_is_taken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], given: list[str]
) -> None:
    assert main._run(["-C", str(tmp_path), "rollout", "start", "--all", *given]) == 2
    assert "no host spec below" in capsys.readouterr().err
