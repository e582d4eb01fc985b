"""The linters, as tests: one each, over the whole repository; and each catches a planted defect."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent


def run(command: list[str], cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    environment = dict(
        os.environ,
        PATH=f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}",
        MYPYPATH=str(ROOT / "tests" / "hosts"),
        NO_COLOR="1",
    )
    return subprocess.run(
        command,
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def must_pass(command: list[str]) -> None:
    done = run(command)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}"


def must_fail(command: list[str], word: str, cwd: Path) -> None:
    done = run(command, cwd)
    assert done.returncode != 0, "the planted defect passed"
    assert word in done.stdout


def tracked(*patterns: str) -> list[str]:
    done = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if (ROOT / line).is_file()]


def shell_scripts() -> list[str]:
    return [
        path
        for path in tracked()
        if not (ROOT / path).is_symlink()
        and (ROOT / path).read_bytes()[:20].startswith((b"#!/bin/sh", b"#!/usr/bin/env b"))
    ]


def test_ruff_finds_nothing() -> None:
    must_pass(["ruff", "check", "."])


def test_ruff_format_changes_nothing() -> None:
    must_pass(["ruff", "format", "--check", "."])


def test_ruff_catches_a_planted_defect(tmp_path: Path) -> None:
    (tmp_path / "planted.py").write_text('"""A module."""\nimport os\n')
    must_fail(["ruff", "check", "--config", str(ROOT / "pyproject.toml"), "."], "F401", tmp_path)


def test_mypy_strict_finds_nothing() -> None:
    # Plugins of several kinds share names: explicit bases keep them apart.
    typed = ["llamarig", "plugins", "tests/hosts", "tests/lint", *tracked("scripts/*.py", "benchmarks/*.py")]
    must_pass(["mypy", "--explicit-package-bases", *typed])


def test_mypy_catches_a_planted_defect(tmp_path: Path) -> None:
    (tmp_path / "planted.py").write_text("def double(number):\n    return number * 2\n")
    config = str(ROOT / "pyproject.toml")
    must_fail(["mypy", "--config-file", config, "planted.py"], "no-untyped-def", tmp_path)


def test_yamllint_finds_nothing() -> None:
    # Fixtures of specs are left out: many are wrong on purpose.
    must_pass(["yamllint", "--strict", *tracked("*.yml", "*.yaml", ":!tests/negative/spec")])


def test_yamllint_catches_a_planted_defect(tmp_path: Path) -> None:
    (tmp_path / "planted.yml").write_text("a: 1\na: 2\n")
    must_fail(["yamllint", "-c", str(ROOT / ".yamllint"), "--strict", "planted.yml"], "duplication", tmp_path)


def test_ansible_lint_production_finds_nothing() -> None:
    must_pass(["ansible-lint", "--offline", "--strict", "--profile", "production", "-q", "--nocolor"])


def test_ansible_lint_catches_a_planted_defect(tmp_path: Path) -> None:
    (tmp_path / "playbooks").mkdir()
    (tmp_path / "playbooks" / "planted.yml").write_text(
        "---\n- name: Planted\n  hosts: all\n  tasks:\n    - name: Run a command without saying when it changes\n"
        "      ansible.builtin.command: /bin/true\n"
    )
    command = ["ansible-lint", "--offline", "--profile", "production", "-q", "--nocolor", "playbooks/planted.yml"]
    must_fail(command, "no-changed-when", tmp_path)


def test_shellcheck_finds_nothing() -> None:
    if shutil.which("shellcheck") is None:
        pytest.skip("shellcheck is not installed (scripts/test installs it)")
    scripts = shell_scripts()
    assert "scripts/environment" in scripts
    must_pass(["shellcheck", *scripts])


def test_shell_scripts_parse_in_bash_and_are_executable() -> None:
    for path in shell_scripts():
        must_pass(["bash", "-n", path])
        assert os.access(ROOT / path, os.X_OK), f"{path} is not executable"
