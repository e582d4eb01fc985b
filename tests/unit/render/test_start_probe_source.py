"""The start probe is a program without a suffix, so the linters have to be pointed at it."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

from tests.support.rendering.probe import PATH

RULES = "A,ARG,B,C4,C90,E,F,I,N,PIE,RET,SIM,UP,W"


def test_ruff_finds_nothing_in_the_probe() -> None:
    command = [
        str(Path(sys.executable).parent / "ruff"),
        "check",
        "--isolated",
        "--line-length=120",
        f"--select={RULES}",
    ]
    done = subprocess.run(
        [*command, "--ignore=N818", "--stdin-filename=start_probe.py", "-"],
        input=PATH.read_text(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_the_probe_needs_the_standard_library_alone_and_no_environment() -> None:
    source = PATH.read_text()
    assert source.startswith("#!/usr/bin/python3 -IBS\n")
    imported = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(str(node.module).split(".")[0])
    assert imported
    assert imported <= set(sys.stdlib_module_names)
