"""Which layers have to be simulated so that the peak is met."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

_SPAN: Final = 3
"""Neighbours that may be alive together: a layer, the one that it reads and the one that reads it."""


def representative(kinds: Sequence[Hashable]) -> list[int]:
    """Numbers of layers that show every run of three neighbours that the whole model has, first and last included.

    The peak comes about among neighbours, since a layer leaves nothing behind but its result; so a repeating pattern is
    needed once, between the model's beginning and its end.
    """
    count = len(kinds)
    runs = [tuple(kinds[i : i + _SPAN]) for i in range(count - _SPAN + 1)]
    wanted = set(runs)
    if len(wanted) == len(runs):
        return list(range(count))
    shown: set[tuple[Hashable, ...]] = set()
    head = 0
    while len(shown) < len(wanted):
        shown.add(runs[head])
        head += 1
    head += _SPAN - 1
    seam = tuple(kinds[head - _SPAN + 1 : head])
    tail = count
    for start in range(count - 1, head - 1, -1):
        if tuple(kinds[start - _SPAN + 1 : start]) == seam:
            tail = start
            break
    return [*range(head), *range(tail, count)]
