"""What would fit instead: the least harmful changes of one service, each planned again before it is named."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from llamarig.plan.types import Plan
from llamarig.spec.base import SpecModel
from llamarig.spec.host import HostSpec
from llamarig.spec.service import Service

Change = dict[str, Any]
Replan = Callable[[HostSpec], Plan]
Fits = Callable[[Change], bool]
Kind = Callable[[Service, Fits], Iterator[tuple[Change, str]]]
"""Changes of one kind with their harm, the least harmful first."""

_UBATCHES = (512, 256, 128, 64)
_KV_TYPES = ("q8_0", "q4_0")
_NONE: Mapping[str, int] = MappingProxyType({})
_STEP = 256
"""Tokens: the engine rounds the window up to a multiple of this."""


def alternatives(
    spec: HostSpec, plan: Plan, replan: Replan, trained: Mapping[str, int] = _NONE
) -> Iterator[dict[str, Any]]:
    """Changes of one setting that make the whole host fit, in order of harm, the first of each kind.

    ``replan`` plans a changed spec without alternatives of its own. ``trained`` is the length in tokens that each
    service's model was trained for; no window beyond it is offered.
    """
    before = {device.gpu: device.used_mib for device in plan.devices}
    for name, service in spec.services.items():

        def planned(change: Change, name: str = name) -> Plan:
            return replan(_changed(spec, name, change))

        def fits(change: Change, planned: Callable[[Change], Plan] = planned) -> bool:
            return planned(change).fits

        for kind in _KINDS:
            offered = _within(kind, service, trained.get(name, 0), fits)
            found = next(((change, harm) for change, harm in offered if fits(change)), None)
            if found is not None:
                change, harm = found
                shown = {"service": name, "change": _shown(service, change), "harm": harm}
                yield shown | _sizes(before, planned(change))


def _within(kind: Kind, service: Service, trained: int, fits: Fits) -> Iterator[tuple[Change, str]]:
    """The changes of a kind; the search for a window begins at what the model was trained for in each slot."""
    if kind is _context and trained:
        slots = 1 if service.kv_unified else service.parallel
        longest = trained * slots // _STEP * _STEP
        if longest < service.context:
            if fits({"context": longest}):
                yield {"context": longest}, "a shorter window, as long as the model was trained for"
                return
            service = service.model_copy(update={"context": longest})
    yield from kind(service, fits)


def _sizes(before: dict[str, float], planned: Plan) -> dict[str, Any]:
    saved = {device.gpu: round(before[device.gpu] - device.used_mib, 2) for device in planned.devices}
    return {
        "saves-mib": {gpu: mib for gpu, mib in saved.items() if mib},
        "free-mib": {device.gpu: round(device.free_mib, 2) for device in planned.devices if device.services},
    }


def _shown(service: Service, change: Change) -> Change:
    """What changes, in the spec's own keys."""
    shown: Change = {}
    for key, value in change.items():
        if isinstance(value, SpecModel):
            old = getattr(service, key).model_dump(by_alias=True)
            new = value.model_dump(by_alias=True)
            shown[key.replace("_", "-")] = {name: item for name, item in new.items() if item != old[name]}
        else:
            shown[key.replace("_", "-")] = value
    return shown


def _changed(spec: HostSpec, name: str, change: Change) -> HostSpec:
    service = spec.services[name].model_copy(update=change)
    return spec.model_copy(update={"services": spec.services | {name: service}})


def _draft_cache(service: Service, _fits: Fits) -> Iterator[tuple[Change, str]]:
    speculation = service.speculation
    if speculation is not None and speculation.kv_cache != "f16":
        yield (
            {"speculation": speculation.model_copy(update={"kv_cache": "f16"})},
            "none: the draft's cache in f16 needs no staged copy",
        )


def _ubatch(service: Service, _fits: Fits) -> Iterator[tuple[Change, str]]:
    for ubatch in _UBATCHES:
        if ubatch < service.ubatch:
            yield {"ubatch": ubatch}, "prompts are read more slowly"


def _slots(service: Service, _fits: Fits) -> Iterator[tuple[Change, str]]:
    for slots in range(service.parallel - 1, 0, -1):
        yield {"parallel": slots}, "fewer requests at once"


def _n_max(service: Service, _fits: Fits) -> Iterator[tuple[Change, str]]:
    speculation = service.speculation
    if speculation is None:
        return
    for n_max in range(speculation.n_max - 1, 0, -1):
        yield {"speculation": speculation.model_copy(update={"n_max": n_max})}, "shorter drafts, slower answers"
    yield {"speculation": None}, "no speculation, slower answers"


def _context(service: Service, fits: Fits) -> Iterator[tuple[Change, str]]:
    """The longest window that fits, found by halving the interval."""
    low, high = 0, service.context // _STEP
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits({"context": middle * _STEP}) else (low, middle)
    if low:
        yield {"context": low * _STEP}, "a shorter window"


def _kv_type(service: Service, _fits: Fits) -> Iterator[tuple[Change, str]]:
    if service.flash_attention == "off":
        return
    for kind in _KV_TYPES:
        if kind not in (service.kv_cache.k, service.kv_cache.v):
            cache = service.kv_cache.model_copy(update={"k": kind, "v": kind})
            yield {"kv_cache": cache}, "answers lose some precision over long contexts"


_KINDS: tuple[Kind, ...] = (_draft_cache, _ubatch, _slots, _n_max, _context, _kv_type)
