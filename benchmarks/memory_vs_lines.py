"""Buffers as planned against what a real server prints when it starts, for published models of up to 7 GiB.

    python benchmarks/memory_vs_lines.py [--server TREE=PATH …] [--source TREE=FOLDER …] [--rounds N] [--seed N]
                                         [--record]

PATH is a ``llama-server`` built for the CPU backend, TREE the version of its engine; ``--source TREE=FOLDER`` builds
one from sources, and without either the reference engine's is built. The models are real headers over holes; the
server makes its contexts and ends. Caches and state have to be equal, compute buffers and rows of logits at most 3 %
above and never below. ``--record`` keeps the lines in ``tests/fixtures/server/TREE.json`` for the unit tests.
``small_servers.py`` has shrunk models, and looks at resident memory, too.
"""

from __future__ import annotations

import argparse
import random
import secrets
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.support import models  # noqa: E402 - found below the checkout
from tests.support.models import server, tools  # noqa: E402 - found below the checkout

LARGEST = 7 << 30
"""Bytes of the largest model that a server is started with."""


def small() -> list[str]:
    """Models that a server can load on any machine."""
    return [name for name, model in models.MODELS.items() if models.compose(model).data_size() < LARGEST]


def ask(program: Path, path: Path, drawn: server.Drawn, port: int) -> server.Buffers:
    """What the server prints for these settings."""
    command = [str(program), *drawn.arguments(str(path), port)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=600, check=False)
    return server.parse(done.stdout + done.stderr)


def collect(program: Path, rounds: int, seed: int, port: int) -> dict[str, list[server.Case]]:
    """Cases of each small model."""
    cases = {}
    with tempfile.TemporaryDirectory() as scratch:
        for name in small():
            path = models.write(name, Path(scratch) / f"{name}.gguf")
            rng = random.Random(f"{seed} {name}")
            drawn = [server.draw(rng, models.MODELS[name]) for _ in range(rounds)]
            cases[name] = [server.Case(item, ask(program, path, item, port)) for item in drawn]
            path.unlink()
    return cases


def report(tree: str, cases: dict[str, list[server.Case]]) -> tuple[int, int, int]:
    """Print a line per model; settings with equal caches and state, those with buffers within the bar, and all."""
    print(f"\n{tree}: settings, those equal in caches and state, those within the bar, those equal to the last digit")
    equal = within = total = 0
    for name, entries in cases.items():
        header = models.header(name)
        hits = [0, 0, 0]
        for case in entries:
            verdict = server.compare(server.planned(header, case.drawn, tree), case.printed)
            hits = [count + ok for count, ok in zip(hits, verdict, strict=True)]
            if not verdict.within:
                print(f"  {case.drawn}: printed {tuple(case.printed)}")
        print(f"{name:26} {len(entries):3} {hits[0]:4} {hits[1]:4} {hits[2]:4}")
        equal, within, total = equal + hits[0], within + hits[1], total + len(entries)
    return equal, within, total


def main() -> int:
    """Compare and print two rows per engine; 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", action="append", default=[], metavar="TREE=PATH")
    parser.add_argument("--source", action="append", default=[], metavar="TREE=FOLDER", help="sources to build it from")
    parser.add_argument("--rounds", type=int, default=5, help="settings for each model")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--port", type=int, default=18_783, help="a free port on this machine")
    parser.add_argument("--record", action="store_true", help="keep what the server printed")
    options = parser.parse_args()
    seed = secrets.randbelow(1 << 32) if options.seed is None else options.seed
    print(f"seed {seed}")
    rows, met_all = [], True
    for tree, program in tools.chosen(options.server, options.source, "llama-server").items():
        cases = collect(program, options.rounds, seed, options.port)
        if options.record:
            origin = f"recorded by benchmarks/memory_vs_lines.py from llama-server of {tree}, CPU backend, seed {seed}"
            server.save(ROOT / "tests" / "fixtures" / "server" / f"{tree}.json", origin, cases)
        equal, within, total = report(tree, cases)
        for what, count, bar in (("caches and state", equal, "all equal"), ("buffers", within, "all within +3 %")):
            met = count == total > 0
            met_all &= met
            rows.append(
                f"{what} over the lines of a server of {tree}  {count} of {total}  {bar}  {'met' if met else 'MISSED'}"
            )
    print("", *rows, sep="\n")
    return 0 if met_all else 1


if __name__ == "__main__":
    sys.exit(main())
