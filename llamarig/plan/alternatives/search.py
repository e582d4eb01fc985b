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


def first_fitting(count: int, judge: Judge, before_mib: float) -> int | None:
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
    low, high = -1, count - 1
    low_mib, high_mib = max(before_mib, 0.0), last.short_mib
    move = 0
    while high - low > 1:
        at = _guess(low, high, low_mib, high_mib, move)
        move += 1
        found = judge(at)
        if found.fits:
            high, high_mib = at, found.short_mib
        else:
            low, low_mib = at, found.short_mib
    return high


_LINE, _NEIGHBOUR, _KINDS = 0, 1, 3


def _guess(low: int, high: int, low_mib: float, high_mib: float, move: int) -> int:
    """Strictly between ``low`` and ``high``: along the line, then beside what fits, then in the middle."""
    kind = move % _KINDS
    if kind == _LINE and low_mib > 0 >= high_mib:
        steps = (high - low) * low_mib / (low_mib - high_mib)
        return min(max(low + round(steps + 0.5), low + 1), high - 1)
    return high - 1 if kind == _NEIGHBOUR else (low + high) // 2
