"""KV cache types, batches and slots that the build can really run."""

from __future__ import annotations

from collections.abc import Iterator

from llamarig.spec.engine import Engine
from llamarig.spec.rules.base import Broken, View
from llamarig.spec.service import Service
from llamarig.spec.tree import Loc

_FLOATS = {"f32", "f16", "bf16"}
_DEFAULT_TYPES = {"f32", "f16", "bf16", "q8_0", "q4_0"}
"""Types whose pairs with themselves have CUDA flash attention in a default build (fattn.cu of b10454)."""
ALL_QUANTS = ("GGML_CUDA_FA_ALL_QUANTS", "GGML_CUDA_FA_QUANTS")
"""The option that compiles the other pairs: its name up to 0.4, and from 0.5 on."""
_MIN_SLOT = 256
"""Tokens: the smallest window of use, and the block in which the engine cuts windows (llama_context of b10454)."""


def kv_pairs(view: View) -> Iterator[Broken]:
    """Flash attention on the GPU exists for certain pairs; others would run on the CPU in silence."""
    for name, service in view.spec.services.items():
        at: Loc = ("services", name, "kv-cache")
        pair = service.kv_cache
        if pair.v not in _FLOATS and service.flash_attention == "off":
            yield Broken(
                (*at, "v"),
                f"a V cache in {pair.v} needs flash attention, which is off",
                "set `flash-attention: on`, or `v: f16`",
                rests_on=(("services", name, "flash-attention"),),
            )
        elif view.spec.engine.backend == "cuda" and service.flash_attention != "off":
            yield from _pair(view.spec.engine, pair.k, pair.v, at, "v" if pair.v != pair.k else "k")
        speculation = service.speculation
        if speculation is not None and view.spec.engine.backend == "cuda" and service.flash_attention != "off":
            draft: Loc = ("services", name, "speculation")
            yield from _pair(view.spec.engine, speculation.kv_cache, speculation.kv_cache, draft, "kv-cache")


def _pair(engine: Engine, k: str, v: str, at: Loc, key: str) -> Iterator[Broken]:
    rests_on: tuple[Loc, ...] = (at, ("engine", "backend"), ("engine", "build", "options"))
    if "iq4_nl" in (k, v):
        yield Broken(
            (*at, key),
            "iq4_nl has no CUDA flash attention, so the cache would be read on the CPU",
            "use q4_0, which takes the same memory",
            rests_on=rests_on,
        )
    elif (k != v or k not in _DEFAULT_TYPES) and not has_all_quants(engine):
        yield Broken(
            (*at, key),
            f"the pair k: {k}, v: {v} has no CUDA flash attention in this build, so it would run on the CPU",
            "use the same type for both (f16, bf16, q8_0, q4_0), or add "
            "`GGML_CUDA_FA_ALL_QUANTS: true` under engine.build.options (the build takes longer)",
            rests_on=rests_on,
        )


def has_all_quants(engine: Engine) -> bool:
    """Whether the build compiles flash attention for every pair of types."""
    on = (True, "ON", "on", "1", "TRUE", "true")
    return any(engine.build.options.get(name) in on for name in ALL_QUANTS)


def batches(view: View) -> Iterator[Broken]:
    """A micro batch is a part of a batch, and each slot needs a window."""
    for name, service in view.spec.services.items():
        at: Loc = ("services", name)
        if service.ubatch > service.batch:
            yield Broken(
                (*at, "ubatch"),
                f"`ubatch` {service.ubatch} is larger than `batch` {service.batch}",
                f"set `batch: {service.ubatch}` or more, or a smaller ubatch",
                rests_on=((*at, "batch"),),
            )
        yield from _slots(service, at)


def _slots(service: Service, at: Loc) -> Iterator[Broken]:
    share = service.context // service.parallel
    if not service.kv_unified and share < _MIN_SLOT:
        yield Broken(
            (*at, "parallel"),
            f"{service.parallel} slots share {service.context} tokens: {share} for each",
            f"at least {_MIN_SLOT} a slot are of use; lower `parallel`, raise `context`, or set `kv-unified: true`",
            rests_on=((*at, "context"), (*at, "kv-unified")),
        )


def slot_windows(view: View) -> Iterator[Broken]:
    """The engine rounds the window, and each slot's part of it, up to whole blocks: what a slot really gets."""
    for name, service in view.spec.services.items():
        slots = 1 if service.kv_unified else service.parallel
        share = _rounded(_rounded(service.context) // slots)
        if service.context // slots >= _MIN_SLOT and share * slots != service.context:
            at: Loc = ("services", name)
            over = f" over {slots} slots" if slots > 1 else ""
            each = f"{share} tokens each, {share * slots} in all" if slots > 1 else f"{share} tokens"
            yield Broken(
                (*at, "context"),
                f"`context` {service.context}{over} is rounded up by the engine: {each}",
                f"write `context: {share * slots}` to have it in the spec",
                rests_on=((*at, "parallel"), (*at, "kv-unified")),
                note=True,
            )


def _rounded(tokens: int) -> int:
    return -(-tokens // _MIN_SLOT) * _MIN_SLOT


def speculation(view: View) -> Iterator[Broken]:
    """Drafts: a drafter where one is needed, none where none is used."""
    for name, service in view.spec.services.items():
        draft = service.speculation
        at: Loc = ("services", name, "speculation")
        if draft is None:
            continue
        if draft.n_min > draft.n_max:
            yield Broken(
                (*at, "n-min"),
                f"`n-min` {draft.n_min} is more than `n-max` {draft.n_max}",
                "lower `n-min`",
                rests_on=((*at, "n-max"),),
            )
        needs_model = draft.type in ("draft-model", "eagle3", "dflash")
        if needs_model and draft.model is None:
            yield Broken((*at, "type"), f"`{draft.type}` needs a drafter", "add `model: NAME`, one of `models`")
        if not needs_model:
            for key in ("model", "gpu"):
                if getattr(draft, key) is not None:
                    yield Broken(
                        (*at, key),
                        f"`{draft.type}` has no drafter of its own",
                        f"remove `{key}`",
                        rests_on=((*at, "type"),),
                    )


RULES = (kv_pairs, batches, slot_windows, speculation)
