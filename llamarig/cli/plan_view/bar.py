"""A stacked bar in characters: a letter begins each term's stretch, a ruler below it bears the capacity marks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mark:
    """A line that the bar is read against."""

    sign: str
    mib: float


def stretches(components: Mapping[str, float], whole: float, width: int) -> list[tuple[str, int]]:
    """Columns of each term in a bar of ``width`` columns that stands for ``whole`` MiB.

    The columns of all terms together are as many as their sum asks for, within half a column; a term that there is at
    all gets one, where there are so many columns: else the largest terms do.
    """
    held = {term: mib for term, mib in components.items() if mib > 0}
    used = sum(held.values())
    if not held or whole <= 0 or width < 1:
        return []
    if len(held) > width:
        kept = sorted(held, key=lambda term: held[term], reverse=True)[:width]
        return [(term, 1) for term in held if term in kept]
    filled = min(max(round(used / whole * width), len(held)), width)
    asked = {term: mib / used * filled for term, mib in held.items()}
    given = {term: max(round(columns), 1) for term, columns in asked.items()}
    while (over := sum(given.values()) - filled) != 0:
        # The one that is furthest above or below what it asks for gives or takes a column.
        movable = given if over < 0 else [term for term in given if given[term] > 1]
        term = max(movable, key=lambda name: (given[name] - asked[name]) * (1 if over > 0 else -1))
        given[term] -= 1 if over > 0 else -1
    return list(given.items())


def ruler(marks: Sequence[Mark], whole: float, width: int, over: tuple[float, float] | None = None) -> str:
    """The line below a bar: each mark's sign under the last column within it.

    Marks whose columns are the same stand side by side, in their order. ``over`` are the MiB from and to which there
    is more than there may be: ``!``.
    """
    if width < 1:
        return ""
    cells = [" "] * width
    if over is not None:
        first, last = (round(mib / whole * width) for mib in over)
        cells[min(first, width - 1) : last] = "!" * max(last - min(first, width - 1), 1)
    before = width
    for mark in sorted(marks, key=lambda mark: mark.mib)[::-1]:
        column = max(min(round(mark.mib / whole * width) - 1, before - 1), 0)
        cells[column] = mark.sign
        before = column
    return "".join(cells).rstrip()
