"""Which flags a release's own server would refuse. The help is recorded from build 10454 (tests/fixtures)."""

from __future__ import annotations

import getpass
from pathlib import Path

import pytest

from tests.support.observe.load import module

HELP = Path(__file__).resolve().parents[2] / "fixtures/llama-server-help-b10454.txt"
flags = module("rig_flags")


@pytest.fixture(scope="module")
def known() -> dict[str, str]:
    options: dict[str, str] = flags.options_of(HELP.read_text())
    return options


def test_flags_that_units_pass_are_known(known: dict[str, str]) -> None:
    passed = ["--model", "-m", "--ctx-size", "--no-kv-unified", "--api-key-file", "--offline", "--no-ui", "--spec-type"]
    assert flags.complaints(known, passed) == []


def test_an_unknown_flag_is_named(known: dict[str, str]) -> None:
    assert flags.complaints(known, ["--model", "--foo-bar"]) == ["--foo-bar: unknown to this release"]


def test_a_removed_flag_is_named_with_the_engines_advice_over_two_lines(known: dict[str, str]) -> None:
    (found,) = flags.complaints(known, ["--draft-max"])
    assert found.startswith("--draft-max: the argument has been removed. use --spec-draft-n-max or")
    assert "--spec-ngram-mod-n-max" in found


def test_a_flag_that_only_a_description_mentions_is_not_known(known: dict[str, str]) -> None:
    text = (
        "--real N      in place of --mentioned, see there\n              and --also-mentioned\n----- --heading -----\n"
    )
    assert set(flags.options_of(text)) == {"--real"}


def program(tmp_path: Path, body: str) -> Path:
    path = tmp_path / "llama-server"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def test_the_help_is_asked_without_the_callers_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLAMA_ARG_SECRET", "leaked")
    monkeypatch.setattr(flags.pwd, "getpwnam", lambda _name: None)
    monkeypatch.setattr(flags, "rights_of", lambda _account: {})
    said = flags.help_of(program(tmp_path, "env; echo --real"), getpass.getuser())
    assert "leaked" not in said
    assert "--real" in said


def test_a_binary_that_does_not_run_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags.pwd, "getpwnam", lambda _name: None)
    monkeypatch.setattr(flags, "rights_of", lambda _account: {})
    with pytest.raises(RuntimeError, match=r"libcuda\.so\.1: cannot open"):
        flags.help_of(program(tmp_path, "echo libcuda.so.1: cannot open >&2; exit 127"), getpass.getuser())


def test_without_a_driver_the_advice_is_the_driver() -> None:
    said = "llama-server: error while loading shared libraries: libcuda.so.1: cannot open shared object file"
    assert "let `driver` in the spec install it" in flags.advice(said)
    assert flags.advice(said.replace("libcuda", "libgomp")) == ""
