"""What would fit instead: the least harmful changes, each planned again before it is named."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from llamarig.plan.alternatives import kinds, placing
from llamarig.plan.alternatives.change import Change, Replan, Series, Subject
from llamarig.plan.alternatives.pairs import pairs
from llamarig.plan.alternatives.search import first_fitting
from llamarig.plan.alternatives.tries import Tries
from llamarig.plan.short import MEMORY_CODES, shortage
from llamarig.plan.types import Plan

__all__ = ["Change", "Replan", "Series", "Subject", "alternatives"]

Kind = Callable[[Subject, str], Series | None]

KINDS: tuple[Kind, ...] = (
    kinds.draft_cache,
    kinds.ubatch,
    kinds.slots,
    kinds.drafts,
    kinds.no_speculation,
    kinds.context,
    kinds.kv_type,
    placing.quant,
    placing.projector,
    placing.experts,
    placing.layers,
)
"""In order of harm."""

RAM_KINDS: tuple[Kind, ...] = (kinds.prompt_cache, kinds.checkpoints)
"""What helps only where RAM is short; less harmful than all else."""


_LAST = ("experts-on-cpu", "gpu-layers")
"""Kinds that cost so much speed that two milder changes together come before them."""


def alternatives(subject: Subject, replan: Replan) -> Iterator[dict[str, Any]]:
    """Changes that make the whole host fit, in order of harm, the least of each kind and service.

    When no single change does, or none but moving layers or experts into RAM, pairs of them. Where something else than
    memory is wrong, nothing is offered: no change of a setting could be planned to fit.
    """
    errors = {finding.code for finding in subject.plan.findings if finding.severity == "error"}
    if not errors or errors - MEMORY_CODES:
        return
    tries = Tries(subject, replan)
    series = list(_series(subject))
    offered = False
    for part in ([each for each in series if each.kind not in _LAST], [each for each in series if each.kind in _LAST]):
        found = list(_singles(part, tries))
        if not found and part and part[0].kind not in _LAST:
            found = list(pairs(part, tries))
        for changes in found:
            offered = True
            yield entry(changes, tries)
    if not offered:
        for pair in pairs(series, tries):
            yield entry(pair, tries)


def _singles(series: list[Series], tries: Tries) -> Iterator[tuple[Change, ...]]:
    """Of each series the least harmful change that fits."""
    found: set[tuple[str, str]] = set()
    for each in series:
        if (each.after, each.service) in found:
            continue
        change = _least(each, tries)
        if change is not None:
            found.add((each.kind, each.service))
            yield (change,)


def _series(subject: Subject) -> Iterator[Series]:
    """All series of the services that hold something where it is short, kind by kind."""
    short = {place for place, mib in shortage(subject.spec, subject.plan).items() if mib > 0}
    ram = ("ram", "") in short
    crowded = [
        name
        for name in subject.spec.services
        if ram or any(name in device.services and ("gpu", device.gpu) in short for device in subject.plan.devices)
    ]
    for kind in (*(RAM_KINDS if ram else ()), *KINDS):
        for name in crowded:
            series = kind(subject, name)
            if series is not None and series.count:
                yield series


def _least(series: Series, tries: Tries) -> Change | None:
    """The least harmful change of a series that fits."""
    if not series.monotone:
        return next((change for at in range(series.count) if tries.fits((change := series.at(at),))), None)
    at = first_fitting(series.count, lambda at: tries.verdict((series.at(at),)), tries.short_mib, series.scale)
    return None if at is None else series.at(at)


def entry(changes: tuple[Change, ...], tries: Tries) -> dict[str, Any]:
    """One alternative in its documented form."""
    planned: Plan = tries.plan(changes)
    shown: dict[str, Any] = {}
    for change in changes:
        for key, value in change.shown.items():
            both = isinstance(value, dict) and isinstance(shown.get(key), dict)
            shown[key] = shown[key] | value if both else value
    data: dict[str, Any] = {"service": changes[0].service, "change": shown}
    return data | {"harm": "; ".join(change.harm for change in changes)} | tries.sizes(planned)
