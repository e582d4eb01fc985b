"""Memory as planned against the engine's own fit tool, for the models that people serve.

    python benchmarks/memory_vs_fit.py [--tool TREE=PATH …] [--source TREE=FOLDER …] [--model NAME …]
                                       [--rounds N] [--others N] [--seed N] [--record] [--verbose]

PATH is a ``llama-fit-params`` built for the CPU backend, TREE the version of its engine, for example
``v0.4=build/bin/llama-fit-params``. ``--source TREE=FOLDER`` builds it from the engine's sources instead, into the
user's cache; that needs cmake and a C++ compiler. Without either the reference engine's is built so, from its locked
source distribution. v0.4.0 as a whole is in the npm package node-llama-cpp 3.21.1, as the git bundle
``llama/gitRelease.bundle``. The models are headers over holes (``tests.support.models``), since the tool reads no
weights.

Every column has to be right: weights and context equal to the rounding of the tool's MiB, and the total never below it
and at most 0.5 % above. ``--record`` writes what the tool printed to ``tests/fixtures/fit/TREE.json``, which
the unit tests hold the model against.
"""

from __future__ import annotations

import argparse
import os
import random
import secrets
import subprocess
import sys
import tempfile
from functools import partial
from itertools import islice
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.support import models  # noqa: E402 - found below the checkout
from tests.support.models import fit, tools  # noqa: E402 - found below the checkout
from tests.support.models.large import LARGE  # noqa: E402 - found below the checkout

TOLERANCE = 0.005


def ask(tool: Path, model: Path, drawn: fit.Drawn) -> fit.Columns | None:
    """What the tool prints for these settings; None when the engine itself cannot start with them.

    It aborts where a graph outgrows its table of nodes, which is eight times the model's tensors: seen with few tensors
    a layer, a rotated cache and several slots.
    """
    environment = os.environ | {"GGML_NO_BACKTRACE": "1"}
    command = [str(tool), *drawn.arguments(str(model))]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    try:
        return fit.parse(done.stdout)
    except ValueError as error:
        if "ggml-impl.h" in done.stderr and "fatal error" in done.stderr:
            print(f"{model.stem}, {drawn}: the engine aborts, too many nodes")
            return None
        raise SystemExit(f"{model.stem}, {drawn}: {error}\n{done.stderr[-2000:]}") from error


def collect(tool: Path, rounds: dict[str, int], seed: int) -> dict[str, list[fit.Case]]:
    """As many cases of each model as it has rounds; its settings depend on the seed and its name alone."""
    cases = {}
    with tempfile.TemporaryDirectory() as scratch:
        for name, count in rounds.items():
            path = models.write(name, Path(scratch) / f"{name}.gguf")
            rng = random.Random(f"{seed} {name}")
            answers = (
                (drawn, ask(tool, path, drawn)) for drawn in iter(partial(fit.draw, rng, models.MODELS[name]), None)
            )
            cases[name] = list(islice((fit.Case(drawn, printed) for drawn, printed in answers if printed), count))
            path.unlink()
    return cases


def report(tree: str, cases: dict[str, list[fit.Case]], verbose: bool) -> tuple[int, int, int]:
    """Print a line per model; settings whose context is equal, whose total is within the bar, and all."""
    print(
        f"\n{tree}: settings, those equal in weights, context and compute, error of the total in % (least, mean, most)"
    )
    equal = within = total = 0
    for name, entries in cases.items():
        header = models.header(name)
        errors, hits = [], [0, 0, 0]
        for case in entries:
            planned = fit.planned(header, case.drawn, tree)
            for column in range(3):
                hits[column] += planned[column] == case.printed[column]
            error = planned.total / case.printed.total - 1
            errors.append(error)
            within += 0 <= error <= TOLERANCE
            if verbose and planned != case.printed:
                print(f"  {case.drawn}: planned {tuple(planned)}, printed {tuple(case.printed)}")
        equal += min(hits[0], hits[1])
        total += len(entries)
        least, mean, most = (f"{100 * value:8.3f}" for value in (min(errors), sum(errors) / len(errors), max(errors)))
        print(f"{name:26} {len(entries):3} {hits[0]:4} {hits[1]:4} {hits[2]:4} {least} {mean} {most}")
    return equal, within, total


def main() -> int:
    """Compare and print one row per tree; 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", action="append", default=[], metavar="TREE=PATH")
    parser.add_argument("--source", action="append", default=[], metavar="TREE=FOLDER", help="sources to build it from")
    parser.add_argument("--model", action="append", default=[], metavar="NAME", choices=list(models.MODELS))
    parser.add_argument("--rounds", type=int, default=20, help="settings for each model of the bar, or those named")
    parser.add_argument("--others", type=int, default=0, help="settings for each model of the other architectures")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--record", action="store_true", help="keep what the tool printed")
    parser.add_argument("--verbose", action="store_true", help="print every setting that differs")
    options = parser.parse_args()
    seed = secrets.randbelow(1 << 32) if options.seed is None else options.seed
    print(f"seed {seed}")
    chosen = tools.chosen(options.tool, options.source, "llama-fit-params")
    rounds = dict.fromkeys(options.model or [model.name for model in LARGE], options.rounds)
    if options.others:
        rounds |= {name: options.others for name in models.MODELS if name not in rounds}
    rows, met_all = [], True
    for tree, tool in chosen.items():
        cases = collect(tool, rounds, seed)
        if options.record:
            origin = (
                f"recorded by benchmarks/memory_vs_fit.py from llama-fit-params of {tree}, CPU backend, seed {seed}"
            )
            fit.save(ROOT / "tests" / "fixtures" / "fit" / f"{tree}.json", origin, cases)
        equal, within, total = report(tree, cases, options.verbose)
        for what, count, bar in (
            ("weights and context", equal, "all equal"),
            ("total", within, "all within +0.5 %"),
        ):
            met = count == total > 0
            met_all &= met
            rows.append(f"{what} over the fit tool of {tree}  {count} of {total}  {bar}  {'met' if met else 'MISSED'}")
    print("", *rows, sep="\n")
    return 0 if met_all else 1


if __name__ == "__main__":
    sys.exit(main())
