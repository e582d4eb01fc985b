"""What would fit instead: the least harmful changes of one service, each planned again before it is named."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from llamarig.plan.types import Plan
from llamarig.spec.host import HostSpec
from llamarig.spec.service import Service

Replan = Callable[[HostSpec], Plan]

_UBATCHES = (512, 256, 128, 64)
_KV_TYPES = ("q8_0", "q4_0")
_STEP = 256
"""Tokens: the engine rounds the window up to a multiple of this."""


def alternatives(spec: HostSpec, plan: Plan, replan: Replan) -> Iterator[dict[str, Any]]:
    """Changes of one setting that make the whole host fit, in order of harm, the first of each kind.

    ``replan`` plans a changed spec without alternatives of its own.
    """
    before = {device.gpu: device.used_mib for device in plan.devices}
    for name, service in spec.services.items():
        for kind in _KINDS:
            for change, harm in kind(service):
                changed = _changed(spec, name, change)
                planned = replan(changed)
                if planned.fits:
                    yield _entry(name, change, harm, before, planned)
                    break


def _entry(name: str, change: dict[str, Any], harm: str, before: dict[str, float], planned: Plan) -> dict[str, Any]:
    saved = {device.gpu: round(before[device.gpu] - device.used_mib, 2) for device in planned.devices}
    return {
        "service": name,
        "change": _shown(change),
        "harm": harm,
        "saves-mib": {gpu: mib for gpu, mib in saved.items() if mib},
        "free-mib": {device.gpu: round(device.free_mib, 2) for device in planned.devices if device.services},
    }


def _shown(change: dict[str, Any]) -> dict[str, Any]:
    """The change in the spec's own keys."""
    shown: dict[str, Any] = {}
    for key, value in change.items():
        plain = value.model_dump(by_alias=True, exclude_unset=False) if hasattr(value, "model_dump") else value
        shown[key.replace("_", "-")] = plain
    return shown


def _changed(spec: HostSpec, name: str, change: dict[str, Any]) -> HostSpec:
    service = spec.services[name].model_copy(update=change)
    return spec.model_copy(update={"services": spec.services | {name: service}})


Kind = Callable[[Service], Iterator[tuple[dict[str, Any], str]]]


def _draft_cache(service: Service) -> Iterator[tuple[dict[str, Any], str]]:
    speculation = service.speculation
    if speculation is not None and speculation.kv_cache != "f16":
        yield (
            {"speculation": speculation.model_copy(update={"kv_cache": "f16"})},
            "none: the draft's cache in f16 needs no staged copy",
        )


def _ubatch(service: Service) -> Iterator[tuple[dict[str, Any], str]]:
    for ubatch in _UBATCHES:
        if ubatch < service.ubatch:
            yield {"ubatch": ubatch}, "prompts are read more slowly"


def _slots(service: Service) -> Iterator[tuple[dict[str, Any], str]]:
    for slots in range(service.parallel - 1, 0, -1):
        yield {"parallel": slots}, "fewer requests at once"


def _n_max(service: Service) -> Iterator[tuple[dict[str, Any], str]]:
    speculation = service.speculation
    if speculation is None:
        return
    for n_max in range(speculation.n_max - 1, 0, -1):
        yield {"speculation": speculation.model_copy(update={"n_max": n_max})}, "shorter drafts, slower answers"
    yield {"speculation": None}, "no speculation, slower answers"


def _kv_type(service: Service) -> Iterator[tuple[dict[str, Any], str]]:
    if service.flash_attention == "off":
        return
    for kind in _KV_TYPES:
        if kind not in (service.kv_cache.k, service.kv_cache.v):
            cache = service.kv_cache.model_copy(update={"k": kind, "v": kind})
            yield {"kv_cache": cache}, "answers lose some precision over long contexts"


def _context(service: Service) -> Iterator[tuple[dict[str, Any], str]]:
    context = service.context // 2
    while context >= _STEP:
        yield {"context": context // _STEP * _STEP}, "a shorter window"
        context //= 2


_KINDS: tuple[Kind, ...] = (_draft_cache, _ubatch, _slots, _n_max, _context, _kv_type)
