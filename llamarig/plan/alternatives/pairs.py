"""Two changes of one service together, where no single one is enough."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from llamarig.plan.alternatives.change import Change, Series
from llamarig.plan.alternatives.search import first_fitting
from llamarig.plan.alternatives.tries import Tries

MOST_PAIRS = 3
"""Pairs that are offered."""

MOST_PLANS = 48
"""Plans that may be made for one host; a fleet with many hosts that do not fit must still be checked in seconds."""

_SLACK_MIB = 64.0
"""By how much two savings together may exceed their sum (a mask or a staged copy shrinks with both) and be tried."""


def pairs(series: list[Series], tries: Tries) -> Iterator[tuple[Change, Change]]:
    """Pairs that fit, the least harmful first: the milder kind as far as it goes, of the other as little as fits.

    Each kind is weighed once, at its end; two that cannot make up for what is short are not tried.
    """
    ends = [(each, each.at(_end(each))) for each in series]
    saved = {number: tries.saved((end,)) for number, (_, end) in enumerate(ends)}
    found = 0
    for first, second in combinations(range(len(ends)), 2):
        if found == MOST_PAIRS or tries.count > MOST_PLANS:
            return
        (mild, mildest), (harsh, harshest) = ends[first], ends[second]
        if mild.service != harsh.service or mild.kind in (harsh.kind, harsh.after):
            continue
        enough = all(
            saved[first].get(place, 0.0) + saved[second].get(place, 0.0) + _SLACK_MIB >= mib
            for place, mib in tries.short.items()
            if mib > 0
        )
        if not enough or not tries.fits((mildest, harshest)):
            continue
        at = _least(mildest, harsh, tries)
        if at is not None:
            found += 1
            yield mildest, harsh.at(at)


def _end(series: Series) -> int:
    return series.count - 1 if series.paired is None else series.paired


def _least(mildest: Change, harsh: Series, tries: Tries) -> int | None:
    if not harsh.monotone:
        return next((at for at in range(harsh.count) if tries.fits((mildest, harsh.at(at)))), None)
    before = tries.verdict((mildest,)).short_mib
    return first_fitting(_end(harsh) + 1, lambda at: tries.verdict((mildest, harsh.at(at))), before, harsh.scale)
