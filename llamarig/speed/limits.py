"""What no software can pass: bandwidth and arithmetic at 100 %, every draft kept."""

from __future__ import annotations

from dataclasses import dataclass

from llamarig.catalog.gpus import Card
from llamarig.memory.settings import Settings
from llamarig.speed.kernels import CLASSES, tensor_ratio
from llamarig.speed.work import Work


@dataclass(frozen=True, slots=True)
class Limits:
    """Tokens a second of one slot, and the figures that they follow from."""

    pass_bytes: float
    """Read by one pass at least."""
    passes_s: float
    """Passes a second when nothing but reading takes time."""
    tokens: int
    """Tokens that a pass yields at most."""
    decode_tok_s: float
    prefill_tok_s: float | None
    """None when the catalog does not know the card's arithmetic rate."""


def limits(work: Work, card: Card, settings: Settings) -> Limits:
    """The bounds of ``work`` on ``card``; what lies in RAM is taken as free, so the bound holds there too."""
    bandwidth = card.bandwidth_gb_s * 1e9
    once = work.read()
    own = settings.n_max if settings.mtp else 0
    drafting = own * work.read_drafting()
    tokens = 1 + settings.longest_draft
    # Drafts of n-grams and of other models cost nothing here: a bound may be too high, never too low.
    reading = once + (drafting if tokens == 1 + own else 0.0)
    return Limits(
        pass_bytes=once,
        passes_s=bandwidth / once if once else float("inf"),
        tokens=tokens,
        decode_tok_s=tokens * bandwidth / reading if reading else float("inf"),
        prefill_tok_s=_prefill(work, card),
    )


def of_bytes(size: float, card: Card, settings: Settings) -> Limits:
    """The decode bound when nothing but a file's size is known: all of it is read, unless experts rest."""
    bandwidth, tokens = card.bandwidth_gb_s * 1e9, 1 + settings.longest_draft
    return Limits(size, bandwidth / size, tokens, tokens * bandwidth / size, None)


def _prefill(work: Work, card: Card) -> float | None:
    if not card.fp32_tflops or not work.flops():
        return None
    best = max(tensor_ratio(card.compute_capability, kind) for kind in CLASSES)
    return card.fp32_tflops * 1e12 * best / work.flops()
