"""Runs every benchmark and prints one table: name, figure, bar, verdict.

``python benchmarks/run.py [NAME...]`` runs those named, for example ``hash_speed``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
COLUMNS = ("name", "figure", "bar", "verdict")


@dataclass(frozen=True)
class Row:
    """One line of a benchmark; ``verdict`` begins with ``met`` when its bar is met."""

    name: str
    figure: str
    bar: str
    verdict: str


def scripts(named: list[str]) -> list[Path]:
    """The benchmarks that run: files here with a ``main``, less this one."""
    found = [path for path in sorted(HERE.glob("*.py")) if path.name != "run.py" and "def main(" in path.read_text()]
    if not named:
        return found
    unknown = sorted(set(named) - {path.stem for path in found})
    if unknown:
        raise SystemExit(f"there is no benchmark {', '.join(unknown)}; there are {', '.join(p.stem for p in found)}")
    return [path for path in found if path.stem in named]


def rows_of(output: str) -> list[Row]:
    """The lines of four columns, parted by two spaces or more."""
    rows = []
    for line in output.splitlines():
        cells = [cell.strip() for cell in line.split("  ") if cell.strip()]
        if len(cells) == len(COLUMNS):
            rows.append(Row(*cells))
    return rows


def run(script: Path) -> list[Row]:
    """Run one benchmark in a process of its own; a row that says so when it broke."""
    print(f"--- {script.stem}", flush=True)
    path = f"{ROOT}:{ROOT / 'tests' / 'hosts'}"
    with subprocess.Popen(
        [sys.executable, str(script)],
        env=dict(os.environ, PYTHONPATH=path),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        lines = []
        for line in process.stdout or ():
            print(line, end="", flush=True)
            lines.append(line)
    rows = rows_of("".join(lines))
    if process.returncode not in {0, 1} or not rows or (process.returncode == 1 and all(_met(row) for row in rows)):
        rows.append(Row(script.stem, f"ended with {process.returncode}", "-", "BROKEN"))
    return rows


def _met(row: Row) -> bool:
    return row.verdict.lower().startswith(("met", "ok", "pass"))


def table(rows: list[Row]) -> str:
    """The rows under their headings, in columns."""
    cells = [COLUMNS, *((row.name, row.figure, row.bar, row.verdict) for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(COLUMNS))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells
    )


def main() -> int:
    """Run what is named, or all; 1 when a bar was missed or a benchmark broke."""
    rows = [row for script in scripts(sys.argv[1:]) for row in run(script)]
    print(f"\n{table(rows)}")
    return 0 if rows and all(_met(row) for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
