"""The least change of a kind that fits, in few plans."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Verdict:
    """What planning one step of a series said."""

    fits: bool
    short_mib: float
    """MiB that the shortest place is short of; negative when something stays free."""


Judge = Callable[[int], Verdict]


Scale = Callable[[int], float]
"""Rises from step to step, from -1 (no step) on; memory falls with it nearly in a straight line."""


def first_fitting(count: int, judge: Judge, before_mib: float, scale: Scale = float) -> int | None:
    """The lowest of ``count`` steps that fits, where each step takes less memory than the one before it.

    ``before_mib`` is what is short without any step. Memory is nearly linear in most settings, so a straight line
    through the known points gives the next guess, its neighbour the proof, and halving the rest when that fails. What
    is returned fits, and the step before it does not.
    """
    if count < 1:
        return None
    last = judge(count - 1)
    if not last.fits:
        return None
    low, high = (-1, max(before_mib, 0.0)), (count - 1, last.short_mib)
    move = 0
    while high[0] - low[0] > 1:
        at = _guess(low, high, move, scale)
        move += 1
        found = judge(at)
        if found.fits:
            high = (at, found.short_mib)
        else:
            low = (at, found.short_mib)
    return high[0]


_LINE, _NEIGHBOUR, _KINDS = 0, 1, 3
_Known = tuple[int, float]
"""A step, and what is short with it."""


def _guess(low: _Known, high: _Known, move: int, scale: Scale) -> int:
    """Strictly between the two: along the line, then beside what fits or does not, then in the middle."""
    kind = move % _KINDS
    (below, below_mib), (above, above_mib) = low, high
    if kind == _LINE and below_mib > 0 >= above_mib:
        start = scale(below)
        wanted = start + (scale(above) - start) * below_mib / (below_mib - above_mib)
        return _first_reaching(wanted, below + 1, above - 1, scale)
    return above - 1 if kind == _NEIGHBOUR else (below + above) // 2


def _first_reaching(wanted: float, low: int, high: int, scale: Scale) -> int:
    """The first step from ``low`` to ``high`` whose scale is ``wanted`` or more; ``high`` when none is."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if scale(middle) >= wanted else (middle + 1, high)
    return low
