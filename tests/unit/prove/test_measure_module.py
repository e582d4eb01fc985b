"""rig_measure: the kernel's figures of a process, and a fit tool that stands in for the engine's."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.observe.load import module, part


@pytest.fixture
def rig_measure() -> Any:
    module("rig_probe")
    return part("rig_measure")


def tool(release: Path, body: str) -> str:
    program = release / "bin" / "llama-fit-params"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)
    return str(release)


def test_the_kernels_figures_of_a_process(rig_measure: Any) -> None:
    found = rig_measure.process_kib(os.getpid())
    assert found["VmHWM"] >= found["VmRSS"] > 1000
    assert set(found) == {"VmHWM", "VmRSS", "RssAnon", "RssFile", "RssShmem"}


def test_a_process_that_is_gone_is_an_error_in_words(rig_measure: Any) -> None:
    assert "No such file" in rig_measure.process_kib(1 << 30)["error"]


def test_the_fit_tool_sees_no_card_and_gets_its_arguments_as_they_are(rig_measure: Any, tmp_path: Path) -> None:
    release = tool(tmp_path, 'echo "[$CUDA_VISIBLE_DEVICES] $# $2"; env | sort')
    found = rig_measure.fit(release, ["--model", "a b $(id)"], os.getpid())
    assert found["error"] == ""
    assert found["lines"][0] == "[] 2 a b $(id)"
    names = {line.partition("=")[0] for line in found["lines"][1:]}
    assert names <= {"CUDA_VISIBLE_DEVICES", "LC_ALL", "PATH", "PWD", "OLDPWD", "SHLVL", "_"}


def test_a_fit_tool_that_fails_is_quoted(rig_measure: Any, tmp_path: Path) -> None:
    release = tool(tmp_path, "echo no such model >&2; exit 3")
    assert rig_measure.fit(release, [], os.getpid()) == {
        "lines": [],
        "error": "llama-fit-params ended with 3: no such model",
    }


def test_a_release_without_the_tool_is_an_error_in_words(rig_measure: Any, tmp_path: Path) -> None:
    assert "No such file" in rig_measure.fit(str(tmp_path), [], os.getpid())["error"]


def test_a_fit_tool_that_hangs_is_ended(rig_measure: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rig_measure, "FIT_SECONDS", 0.3)
    assert "gave no answer" in rig_measure.fit(tool(tmp_path, "exec sleep 60"), [], os.getpid())["error"]


def test_what_a_fit_tool_floods_is_cut(rig_measure: Any, tmp_path: Path) -> None:
    found = rig_measure.fit(tool(tmp_path, "head -c 9000000 /dev/zero | tr '\\0' '\\n'"), [], os.getpid())
    assert len(found["lines"]) == 64
