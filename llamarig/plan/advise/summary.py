"""The verdict on cards in one line."""

from __future__ import annotations

from collections.abc import Sequence

from llamarig.plan.advise.row import Row
from llamarig.plan.quality import TARGET_BITS


def summary(rows: Sequence[Row], context: int) -> str:
    """What the cards are good for: the best that fits whole, and what else there is where that is below the target."""
    by_verdict: dict[str, list[Row]] = {}
    for row in rows:
        by_verdict.setdefault(row.verdict, []).append(row)
    window = f"a {context:,}-token window"
    said = []
    if good := by_verdict.get("recommended"):
        said.append(f"{_bits(good)} with room for {window}")
    if tight := by_verdict.get("fits"):
        said.append(f"{_bits(tight)} with {window} and no room: watch the KV cache")
    if not said and (coarse := by_verdict.get("usable")):
        said.append(f"{_bits(coarse)} whole on the cards with {window}")
    if not said and (poor := [row for row in rows if row.fits]):
        said.append(f"{_bits(poor[:1])} fit with {window}, not recommended")
    aside = [row for row in rows if row.bits == TARGET_BITS and row.verdict in ("narrow-cache", "layers-in-ram")]
    if aside and not (good or tight):
        words = f"{_bits(aside)} {_aside(aside[0])}"
        said.append(words if said or aside[0].verdict == "narrow-cache" else f"not whole on the cards: {words}")
    if not said and (slow := by_verdict.get("layers-in-ram")):
        said.append(f"not whole on the cards: {_bits(slow[:1])} {_aside(slow[0])}")
    return "; or ".join(said) or "not a host for this model"


def _aside(row: Row) -> str:
    if not row.in_ram:
        return f"with a {row.kv_cache} cache"
    speed = "at a cost in speed" if row.verdict == "narrow-cache" else ram_speed(row.decode_at_most)
    partly = f"with {row.in_ram} in RAM, {speed}"
    return f"with a {row.kv_cache} cache or {partly}" if row.verdict == "narrow-cache" else f"only {partly}"


def ram_speed(bound: float | None) -> str:
    """How fast it is at most with something in RAM, or how to ask."""
    if bound is None:
        return "speed unknown: say how fast the RAM is with --ram-gb-s"
    return f"at most {bound:,.1f} tok/s"


def _bits(rows: Sequence[Row]) -> str:
    numbers = sorted({row.bits for row in rows}, reverse=True)
    words = [f"{bits}" for bits in numbers]
    return f"{', '.join(words[:-1])} and {words[-1]} bits" if len(words) > 1 else f"{words[0]} bits"
