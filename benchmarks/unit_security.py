"""How far every kind of rendered unit is confined, by Debian 13's own systemd.

Bar: ``systemd-analyze security --offline=yes`` says at most 1.2 (0 is best, 10 worst; the best public unit
for this server: 1.5). The one unit that loads modules and makes device nodes has a bar of its own, told with its
reason where the kinds are (``tests/support/rendering/kinds.py``). The figure is about directives: those of a
server that no run on a card has proven are listed.
Run it by ``python benchmarks/run.py unit_security``.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lab import Lab

from llamarig.render.sandbox import UNPROVEN_ON_GPU
from tests.support.rendering.kinds import bar, units

DEBIAN_13 = 257
"""The version of systemd in Debian 13; older ones know fewer directives and score differently."""

Analyse = Callable[[str], str]
"""From a unit's text to what ``systemd-analyze security`` says."""


def _local_version() -> int:
    if shutil.which("systemd-analyze") is None:
        return 0
    done = subprocess.run(["systemd-analyze", "--version"], capture_output=True, text=True, check=False)
    found = re.match(r"systemd (\d+)", done.stdout)
    return int(found.group(1)) if found else 0


@contextmanager
def _on_this_machine() -> Iterator[Analyse]:
    with tempfile.TemporaryDirectory() as directory:
        unit = Path(directory) / "llama-chat.service"

        def analyse(text: str) -> str:
            unit.write_text(text, encoding="utf-8")
            command = ["systemd-analyze", "security", "--offline=yes", "--no-pager", str(unit)]
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout

        yield analyse


@contextmanager
def _in_a_lab() -> Iterator[Analyse]:
    with Lab("unit-security") as lab:
        host = lab.host("scored", fresh=True)

        def analyse(text: str) -> str:
            host.write("/root/llama-chat.service", text.encode())
            return host.exec("systemd-analyze security --offline=yes --no-pager /root/llama-chat.service").output

        yield analyse


def exposure(output: str) -> float:
    """The overall figure in what systemd-analyze printed."""
    found = re.search(r"Overall exposure level for \S+: ([0-9.]+)", output)
    if found is None:
        raise SystemExit(f"systemd-analyze gave no figure:\n{output}")
    return float(found.group(1))


def main() -> int:
    """Print a line a kind of unit, then what is unproven on a card; 1 when a bar is missed."""
    missed = False
    with _on_this_machine() if _local_version() == DEBIAN_13 else _in_a_lab() as analyse:
        for kind, text in units().items():
            figure = exposure(analyse(text))
            met = figure <= bar(kind)
            missed = missed or not met
            print(f"exposure, {kind:36}  {figure:.1f}  at most {bar(kind)}  {'met' if met else 'MISSED'}")
    print("Not proven on a GPU by any run yet:")
    for directive in UNPROVEN_ON_GPU:
        print(f" {directive}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
