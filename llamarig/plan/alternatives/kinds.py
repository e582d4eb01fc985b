"""Changes of a service's own settings: draft cache, ubatch, slots, drafts, window, KV type, prompt cache."""

from __future__ import annotations

from typing import Any

from llamarig.gguf.tensor_types import BY_NAME
from llamarig.plan.alternatives.change import Change, Series, ServiceEdit, Subject, listed
from llamarig.spec.service import KvCache, Service, Speculation

STEP = 256
"""Tokens: the engine rounds the window up to a multiple of this."""

_UBATCHES = (2048, 1024, 512, 256, 128, 64)
_KV_TYPES = ("f16", "q8_0", "q4_0")
"""Types whose pairs CUDA's flash attention is compiled for by default, widest first."""
_BITS = 8
_WHOLE = 100
_SLOT_COUNTS = 16
"""Numbers of slots that are tried where each has to be planned, for the sake of a fleet; all of them below twice."""
_PAIRED = 4
"""A pair of changes leaves this part of the window that is asked for; with less, something else is to be changed."""


def setting(**changes: Any) -> ServiceEdit:
    """Settings of the service itself."""
    return lambda service: service.model_copy(update=changes)


def speculation(**changes: Any) -> ServiceEdit:
    """Settings of its speculation."""

    def edit(service: Service) -> Service:
        old = service.speculation
        new = None if old is None else old.model_copy(update=changes)
        return service.model_copy(update={"speculation": new})

    return edit


def draft_cache(subject: Subject, name: str) -> Series | None:
    """f16 for the draft's cache, which then needs no staged copy."""
    now = subject.spec.services[name].speculation
    if now is None or now.kv_cache == "f16":
        return None
    harm = "none: the draft's cache in f16 needs no staged copy"
    change = Change(name, {"speculation": {"kv-cache": "f16"}}, harm, speculation(kv_cache="f16"))
    return listed("draft-kv-cache", name, [change])


def ubatch(subject: Subject, name: str) -> Series | None:
    """Shorter passes over a prompt."""
    service = subject.spec.services[name]
    now = min(service.ubatch, service.batch)
    changes = [
        Change(name, {"ubatch": size}, _passes(now, size), setting(ubatch=size)) for size in _UBATCHES if size < now
    ]
    return listed("ubatch", name, changes)


def _passes(now: int, size: int) -> str:
    return (
        f"prompts are read more slowly: in passes of {size:,} tokens instead of {now:,}, "
        f"and each pass reads all weights once"
    )


def slots(subject: Subject, name: str) -> Series | None:
    """Fewer requests at once."""
    service = subject.spec.services[name]
    # Fewer slots may take more: parts of the window and the tokens that each has in a pass are rounded.
    counts = range(service.parallel - 1, 0, -max(service.parallel // _SLOT_COUNTS, 1))
    changes = [
        Change(name, {"parallel": count}, _at_once(count, service.parallel), setting(parallel=count))
        for count in counts
    ]
    return listed("slots", name, changes, monotone=False)


def _at_once(count: int, now: int) -> str:
    return f"fewer requests at once: {count} instead of {now}; the others wait"


def drafts(subject: Subject, name: str) -> Series | None:
    """Shorter drafts."""
    now = subject.spec.services[name].speculation
    if now is None:
        return None
    changes = [drafting(name, now, n_max, _drafted(n_max, now)) for n_max in range(now.n_max - 1, 0, -1)]
    return listed("n-max", name, changes)


def drafting(name: str, now: Speculation, n_max: int, harm: str = "") -> Change:
    """Another longest draft; the shortest one comes down with it, for it is never longer."""
    n_min = min(now.n_min, n_max)
    keys = {"n-max": n_max} if n_min == now.n_min else {"n-max": n_max, "n-min": n_min}
    return Change(name, {"speculation": keys}, harm, speculation(n_max=n_max, n_min=n_min))


def no_speculation(subject: Subject, name: str) -> Series | None:
    """No drafts at all, where shorter ones are not enough."""
    if subject.spec.services[name].speculation is None:
        return None
    harm = "no speculation, slower answers: every token takes a pass of its own"
    change = Change(name, {"speculation": None}, harm, setting(speculation=None))
    return Series("speculation", name, 1, lambda _: change, after="n-max")


def _drafted(n_max: int, now: Speculation) -> str:
    return f"shorter drafts, slower answers: a pass yields at most {n_max + 1} tokens instead of {now.n_max + 1}"


def context(subject: Subject, name: str) -> Series | None:
    """A shorter window, from what the model was trained for on downwards."""
    service = subject.spec.services[name]
    longest = (service.context - 1) // STEP * STEP
    trained = trained_window(subject, name)
    if trained:
        longest = min(longest, trained)
    count = max((longest - least_window(service)) // STEP + 1, 0)
    paired = min(max((longest - service.context // _PAIRED) // STEP, 0), count - 1) if count else None
    return Series("context", name, count, lambda at: _window(subject, name, longest - at * STEP), paired=paired)


def least_window(service: Service) -> int:
    """The shortest window that a spec may give all slots together: ``STEP`` tokens for each that has its own part."""
    return STEP if service.kv_unified else STEP * service.parallel


def trained_window(subject: Subject, name: str) -> int:
    """Tokens of the window over all slots that the model was trained for; 0 when the header does not say."""
    service = subject.spec.services[name]
    shape = subject.shapes.get(name)
    many = 1 if service.kv_unified else service.parallel
    return shape.trained_context * many // STEP * STEP if shape is not None else 0


def _window(subject: Subject, name: str, tokens: int) -> Change:
    service = subject.spec.services[name]
    many = 1 if service.kv_unified else service.parallel
    part = _WHOLE * tokens / service.context
    harm = f"a shorter window: a slot holds {tokens // many:,} tokens, {part:.0f} % of what is asked for"
    if tokens == trained_window(subject, name):
        harm = f"a shorter window, as long as the model was trained for: {tokens // many:,} tokens a slot"
    return Change(name, {"context": tokens}, harm, setting(context=tokens))


def kv_type(subject: Subject, name: str) -> Series | None:
    """A narrower KV cache; the engine quantises V only with flash attention."""
    service = subject.spec.services[name]
    if service.flash_attention == "off":
        return None
    now = max(_bits(service.kv_cache.k), _bits(service.kv_cache.v))
    changes = []
    for kind in _KV_TYPES:
        pair = {key: kind for key, old in (("k", service.kv_cache.k), ("v", service.kv_cache.v)) if old != kind}
        if pair and _bits(kind) < now:
            cache = KvCache.model_validate({"k": kind, "v": kind})
            changes.append(Change(name, {"kv-cache": pair}, _precision(kind, now), setting(kv_cache=cache)))
    return listed("kv-cache", name, changes, monotone=False)


def _bits(kind: str) -> float:
    stored = BY_NAME[kind.upper()]
    return stored.size * _BITS / stored.block


def _precision(kind: str, now: float) -> str:
    return (
        f"answers lose some precision over long contexts: each cached value keeps {_bits(kind):g} bits instead of "
        f"{now:g}"
    )


def prompt_cache(subject: Subject, name: str) -> Series | None:
    """Less RAM for prompts that were read before."""
    service = subject.spec.services[name]
    sizes = [size for size in (8192, 4096, 2048, 1024, 512, 0) if size < service.cache_ram_mib]
    changes = [Change(name, {"cache-ram-mib": size}, _again(size), setting(cache_ram_mib=size)) for size in sizes]
    return listed("cache-ram-mib", name, changes)


def _again(size: int) -> str:
    kept = f"only what fits into {size:,} MiB is kept" if size else "nothing is kept"
    return f"prompts that return are read again: {kept} of those that left their slot"


def checkpoints(subject: Subject, name: str) -> Series | None:
    """Fewer context checkpoints in RAM."""
    service = subject.spec.services[name]
    changes = [
        Change(name, {"context-checkpoints": count}, _back(count, service), setting(context_checkpoints=count))
        for count in range(service.context_checkpoints - 1, -1, -1)
    ]
    return listed("context-checkpoints", name, changes)


def _back(count: int, service: Service) -> str:
    return (
        f"a changed prompt is read again from further back: {count} places to return to instead of "
        f"{service.context_checkpoints}"
    )
