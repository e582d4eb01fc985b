"""Measured runs of other people's servers beside the speed model, and beside what it says of each unseen.

    python benchmarks/speed_rows.py [--all]

"Left out" is the honest column: the parameters were fitted to every other run. Runs that are not fitted to are marked
with the reason. Without --all only the reference stack's runs are printed; the sums are over all.
"""

from __future__ import annotations

import argparse
import math
import sys

from llamarig.catalog.speeds import Run, speeds
from llamarig.speed.drafting import tokens_per_pass
from llamarig.speed.fit import CARD, errors, fit, left_out
from llamarig.speed.runs import fitted_runs, kind_of, measured, predicted

STACK = "rtx-pro-4000-blackwell-sff"
BAR = {"decode": 0.10, "prefill": 0.15}
"""Root mean square of ln(said / measured), each run left out."""


def off(said: float, run: Run) -> str:
    return f"{said / measured(run) - 1:+7.1%}"


def line(run: Run, fitted: dict[str, float], unseen: float | None) -> str:
    known = {f"card:{run.card}": CARD[0]} | fitted
    said = predicted(run, known)
    cells = f"{run.card:28} {run.name:46} {measured(run):9.2f} {said:9.2f} {off(said, run)}"
    if unseen is not None:
        cells += f" {unseen:9.2f} {off(unseen, run)}"
    remark = run.note if not run.fit or run.acceptance_assumed else ""
    return f"{cells}  {remark}".rstrip()


def implied(run: Run, fitted: dict[str, float]) -> str:
    """The acceptance that would make a run without a published one come out."""
    needed = tokens_per_pass(run.n_max) * measured(run) / predicted(run, fitted)
    return f"{run.name}: {measured(run)} tok/s would need an acceptance of {(needed - 1) / run.n_max:.2f}"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true", help="print the runs of every card")
    everything = parser.parse_args().all
    runs = fitted_runs()
    fitted = fit(runs, speeds().fitted)
    unseen = dict(zip((id(run) for run in runs), left_out(runs, fitted), strict=True))
    print(f"{'card':28} {'run':46} {'measured':>9} {'model':>9} {'':7} {'left out':>9}")
    for run in speeds().runs:
        if everything or run.card == STACK:
            print(line(run, fitted, unseen.get(id(run))))
    for run in speeds().runs:
        if run.n_max and run.acceptance is None:
            print(implied(run, fitted))
    found = errors(runs, [unseen[id(run)] for run in runs])
    worst = max(runs, key=lambda run: abs(math.log(unseen[id(run)] / measured(run))))
    print(f"worst left out: {worst.card}, {worst.name}, {off(unseen[id(worst)], worst).strip()}")
    good = True
    for kind, error in found.items():
        count = sum(kind_of(run) == kind for run in runs)
        met = error <= BAR[kind]
        good = good and met
        name = f"{kind} of {count} runs left out in turn"
        print(f"{name}  rms {error:.1%}  at most {BAR[kind]:.0%}  {'met' if met else 'MISSED'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
