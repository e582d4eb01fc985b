"""What would fit instead: the least harmful changes, each planned again before it is named."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from llamarig.plan.alternatives import kinds, placing
from llamarig.plan.alternatives.change import Change, Replan, Series, Subject
from llamarig.plan.alternatives.pairs import pairs
from llamarig.plan.alternatives.search import first_fitting
from llamarig.plan.alternatives.tries import Tries
from llamarig.plan.short import MEMORY_CODES, UNPLANNED_CODES, shortage
from llamarig.plan.speed import speed_json
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
    placing.coarse_quant,
)
"""In order of harm."""

RAM_KINDS: tuple[Kind, ...] = (kinds.prompt_cache, kinds.checkpoints)
"""What helps only where RAM is short; less harmful than all else."""


_COARSE = "coarse-quant"
_LAST = ("experts-on-cpu", "gpu-layers", _COARSE)
"""Kinds that cost so much speed or quality that two milder changes together come before them."""


def alternatives(subject: Subject, replan: Replan) -> Iterator[dict[str, Any]]:
    """Changes that make the whole host fit, in order of harm, the least of each kind and service.

    When no single change does, or none but moving layers or experts into RAM or a file that is not recommended, pairs
    of them, such a file in a pair too, before layers and experts in RAM. Nothing is offered beside an error which keeps
    the memory from being known; other errors stay as they are.
    """
    errors = {finding.code for finding in subject.plan.findings if finding.severity == "error"}
    if not errors & MEMORY_CODES or errors & UNPLANNED_CODES:
        return
    tries = Tries(subject, replan)
    series = list(_series(subject))
    mild = [each for each in series if each.kind not in _LAST]
    fitting = set[tuple[str, str]]()
    found: list[tuple[Change, ...]] = list(_singles(mild, tries, fitting))
    found = found or list(pairs(mild, tries)) or [*_with_coarse(series, tries)]
    found += _singles([each for each in series if each.kind in _LAST], tries, fitting)
    for changes in found or pairs(series, tries):
        yield entry(changes, tries)


def _with_coarse(series: list[Series], tries: Tries) -> list[tuple[Change, Change]]:
    """A file that is not recommended with a mild change, the largest first, where no such file is enough alone."""
    coarse = [each for each in series if each.kind == _COARSE]
    if any(tries.fits((each.at(each.count - 1),)) for each in coarse):
        return []
    found = pairs([each for each in series if each.kind not in _LAST] + coarse, tries)
    return sorted(found, key=lambda pair: -_file_bytes(pair[1]))


def _file_bytes(change: Change) -> int:
    return sum(int(file["size"]) for file in change.shown.get("models", {}).values())


def _singles(series: list[Series], tries: Tries, found: set[tuple[str, str]]) -> Iterator[tuple[Change, ...]]:
    """Of each series the least harmful change that fits; ``found`` gathers kind and service of those that do."""
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
    data |= {"harm": "; ".join(change.harm for change in changes)} | tries.sizes(planned)
    return data | _speed(changes[0].service, tries, planned)


def _speed(service: str, tries: Tries, planned: Plan) -> dict[str, Any]:
    """Tokens a second with the change, where it moves them; nothing where they are not predicted."""
    before, after = (speed_json(plan.speeds.get(service)) for plan in (tries.subject.plan, planned))
    if after is None:
        return {}
    keys = ("decode-tok-s", "decode-tok-s-full", "prefill-tok-s")
    said = {key: after[key] for key in keys}
    return {} if before is not None and said == {key: before[key] for key in keys} else {"speed": said}
