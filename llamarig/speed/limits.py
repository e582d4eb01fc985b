"""What no software can pass: bandwidth and arithmetic at 100 %, every draft kept."""

from __future__ import annotations

from collections.abc import Sequence
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
    drafting: bool
    """Whether the passes of a draft head are counted too."""
    decode_tok_s: float
    flops: float = 0.0
    """Operations of one token."""
    peak_tflops: float = 0.0
    """The highest rate that the cards' tensor cores reach on paper; 0 when it is not known."""

    @property
    def prefill_tok_s(self) -> float | None:
        """None when the card's arithmetic rate or the model's operations are not known."""
        return self.peak_tflops * 1e12 / self.flops if self.peak_tflops and self.flops else None


def limits(work: Work, card: Card, settings: Settings) -> Limits:
    """The bounds of ``work`` on ``card``; what lies in RAM is taken as free, so the bound holds there too."""
    return limits_on(work, (card,), settings)


def limits_on(work: Work, cards: Sequence[Card], settings: Settings, held: Sequence[float] = ()) -> Limits:
    """The bounds of a model on one card or several.

    Split by layers, a pass goes through the cards one after the other, and each reads the bytes that it holds
    (``held``); what is in none of them is read by the fastest, without ``held`` all of it. Split by tensors, the cards
    read side by side. A prompt keeps all of them at work either way: passes follow each other through the cards.
    """
    once = work.read()
    own = settings.n_max if settings.mtp else 0
    drafting = own * work.read_drafting()
    tokens = 1 + settings.longest_draft
    # Drafts of n-grams and of other models cost nothing here: a bound may be too high, never too low.
    counted = bool(own) and tokens == 1 + own
    reading = once + (drafting if counted else 0.0)
    peaks = [_peak_tflops(card) for card in cards]
    return Limits(
        pass_bytes=once,
        passes_s=1 / _seconds(once, cards, settings, held) if once else float("inf"),
        tokens=tokens,
        drafting=counted,
        decode_tok_s=tokens / _seconds(reading, cards, settings, held) if reading else float("inf"),
        flops=work.flops(),
        peak_tflops=sum(peaks) if all(peaks) else 0.0,
    )


def of_bytes(size: float, cards: Sequence[Card], settings: Settings) -> Limits:
    """The decode bound when nothing but the bytes that a pass reads is known."""
    passes, tokens = 1 / _seconds(size, cards, settings), 1 + settings.longest_draft
    return Limits(size, passes, tokens, drafting=False, decode_tok_s=tokens * passes)


def _seconds(size: float, cards: Sequence[Card], settings: Settings, held: Sequence[float] = ()) -> float:
    """The least time in which ``size`` bytes are read."""
    rates = [card.bandwidth_gb_s * 1e9 for card in cards]
    if settings.split_mode == "tensor":
        return size / sum(rates)
    placed = sum(held)
    known = min(placed, size)
    in_turn = sum(part / rate for part, rate in zip(held, rates, strict=True)) * known / placed if placed else 0.0
    return in_turn + (size - known) / max(rates)


def _peak_tflops(card: Card) -> float:
    """The highest rate on paper; 0 when it is not known."""
    best = max(tensor_ratio(card.compute_capability, kind) for kind in CLASSES)
    return (card.fp32_tflops or 0.0) * best
