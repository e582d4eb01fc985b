"""Which layers have to be simulated so that the peak is met."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

_SPAN: Final = 3
"""Neighbours that may be alive together: a layer, the one that it reads and the one that reads it."""

_LONGEST: Final = 16
"""Layers of the longest pattern that is looked for."""


def representative(kinds: Sequence[Hashable]) -> list[int]:
    """Numbers of layers that show every run of three neighbours that the whole model has, first and last included.

    The peak comes about among neighbours, since a layer leaves nothing behind but its result; so a repeating pattern is
    needed once, between the model's beginning and its end. Its result lies at one of two places by turns, and with it
    what is free for the logits: an even number of repetitions is left out. A model without a pattern is needed whole.
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
    for tail in range(count - 1, head, -1):
        pattern = _pattern(kinds[head - _SPAN + 1 : tail + 1])
        if pattern and (tail - head) % (2 * pattern) == 0:
            return [*range(head), *range(tail, count)]
    return list(range(count))


def _pattern(kinds: Sequence[Hashable]) -> int:
    """Length of the shortest pattern that ``kinds`` repeats; 0 when there is none."""
    for length in range(1, min(_LONGEST, len(kinds) - _SPAN) + 1):
        if all(kinds[i] == kinds[i + length] for i in range(len(kinds) - length)):
            return length
    return 0
