"""Fits the parameters of the speed model to the measured runs, and tells how well it does on runs it has not seen.

``python -m llamarig.speed.fit`` prints ``fitted`` and ``error`` as they stand in catalog/speeds.yml.

All runs share all parameters; a card has one of its own, the rate that its arithmetic reaches of what is on paper
(clocks, power). No run has one. Each parameter is drawn weakly to a value that makes sense before any run
was seen, so that a card with one run cannot explain it away.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Final

from llamarig.catalog.speeds import Run
from llamarig.speed.runs import DECODE, PREFILL, fitted_runs, kind_of, measured, predicted

NOISE: Final = 0.04
"""How far two runs of the same setting lie apart (ln of tokens a second): 0.02 to 0.06 in the published ones."""

START: Final[dict[str, tuple[float, float]]] = {
    "bandwidth": (0.88, 0.05),
    "tiles": (0.7, 0.3),
    "experts": (0.6, 0.5),
    "cache": (0.5, 0.5),
    "unpacking": (1.0, 0.7),
    "layer-us": (25.0, 0.5),
    "draft-ms": (0.8, 0.7),
    "tensor": (0.2, 0.5),
    "attention": (0.7, 0.5),
    "cap": (0.7, 0.5),
    "instructions:plain": (6.0, 0.7),
    "instructions:k": (9.0, 0.7),
    "instructions:k-low": (9.0, 0.7),
    "instructions:i4": (8.0, 0.7),
    "instructions:i-low": (9.0, 0.7),
    "instructions:fp4": (7.0, 0.7),
    "instructions:float": (2.0, 0.1),
}
"""A parameter's value before any run, and how much doubt there is (standard deviation of its logarithm).
``bandwidth``: what reading alone reaches of the vendor's figure. ``float``: one multiplication and addition."""

CARD: Final = (1.0, 0.25)
"""The same for each card's own."""

STEP: Final = 1e-5
ROUNDS: Final = 200

Vector = list[float]


def start(runs: Sequence[Run]) -> dict[str, tuple[float, float]]:
    """All parameters that ``runs`` bear on."""
    return START | {f"card:{name}": CARD for name in sorted({run.card for run in runs})}


def fit(runs: Sequence[Run], near: dict[str, float] | None = None) -> dict[str, float]:
    """The parameters that fit ``runs`` best; ``near`` is where the search begins.

    Least squares of ln(predicted / measured) by the method of Levenberg and Marquardt; all parameters are positive, so
    their logarithms are what is searched.
    """
    known = start(runs)
    names = list(known)
    middle = [math.log(known[name][0]) for name in names]
    doubt = [known[name][1] for name in names]
    begin = near or {}
    at = [math.log(begin.get(name, known[name][0])) for name in names]

    def misses(point: Vector) -> Vector:
        fitted = {name: math.exp(value) for name, value in zip(names, point, strict=True)}
        seen = [math.log(predicted(run, fitted) / measured(run)) / NOISE for run in runs]
        return seen + [(value - mean) / width for value, mean, width in zip(point, middle, doubt, strict=True)]

    best = minimum(misses, at)
    return {name: math.exp(value) for name, value in zip(names, best, strict=True)}


def minimum(misses: Callable[[Vector], Vector], at: Vector) -> Vector:
    """Where the sum of the squares of ``misses`` is least, from ``at`` on."""
    now = misses(at)
    cost, damping = _squares(now), 1e-2
    for _ in range(ROUNDS):
        slopes = []
        for number in range(len(at)):
            moved = [*at[:number], at[number] + STEP, *at[number + 1 :]]
            slopes.append([(after - before) / STEP for after, before in zip(misses(moved), now, strict=True)])
        normal = [[sum(map(float.__mul__, left, right)) for right in slopes] for left in slopes]
        pull = [-sum(map(float.__mul__, slope, now)) for slope in slopes]
        for number, row in enumerate(normal):
            row[number] += damping
        try_at = [value + step for value, step in zip(at, solved(normal, pull), strict=True)]
        then = misses(try_at)
        if _squares(then) < cost:
            gained = cost - _squares(then)
            at, now, cost, damping = try_at, then, _squares(then), damping / 5
            if gained < 1e-6 * cost:
                break
        else:
            damping *= 10
    return at


def _squares(numbers: Vector) -> float:
    return sum(number * number for number in numbers)


def solved(rows: list[Vector], right: Vector) -> Vector:
    """The solution of a system of linear equations, by elimination with pivots."""
    size = len(right)
    system = [[*row, value] for row, value in zip(rows, right, strict=True)]
    for column in range(size):
        pivot = max(range(column, size), key=lambda row: abs(system[row][column]))
        system[column], system[pivot] = system[pivot], system[column]
        head = system[column]
        for row in range(column + 1, size):
            factor = system[row][column] / head[column]
            if factor:
                system[row] = [a - factor * b for a, b in zip(system[row], head, strict=True)]
    found = [0.0] * size
    for row in reversed(range(size)):
        rest = sum(system[row][other] * found[other] for other in range(row + 1, size))
        found[row] = (system[row][size] - rest) / system[row][row]
    return found


def left_out(runs: Sequence[Run], near: dict[str, float]) -> list[float]:
    """For each run, what the model says of it when it was fitted to all others."""
    found = []
    for number, run in enumerate(runs):
        without = fit([*runs[:number], *runs[number + 1 :]], near)
        found.append(predicted(run, without))
    return found


def errors(runs: Sequence[Run], said: Sequence[float]) -> dict[str, float]:
    """Root mean square of ln(said / measured), for decoding and for reading."""
    found = {}
    for kind in (DECODE, PREFILL):
        logs = [math.log(value / measured(run)) for run, value in zip(runs, said, strict=True) if kind_of(run) == kind]
        if logs:
            found[kind] = math.sqrt(_squares(logs) / len(logs))
    return found


def _key(name: str) -> str:
    return f'"{name}"' if ":" in name else name


def main() -> int:
    """Print what catalog/speeds.yml must hold."""
    runs = fitted_runs()
    fitted = fit(runs)
    lines = ["fitted:", *(f"  {_key(name)}: {value:.4g}" for name, value in fitted.items())]
    found = errors(runs, left_out(runs, fitted))
    lines += ["error:", *(f"  {kind}: {value:.3f}" for kind, value in found.items())]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
