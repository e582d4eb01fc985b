"""Seconds of one pass, by its width and by what is in the window."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from llamarig.speed.kernels import EXPERT_VECTOR_WIDTH, TILES, VECTOR_ATTENTION_WIDTH, VECTOR_WIDTH, columns
from llamarig.speed.rates import Rates
from llamarig.speed.work import Cache, Matrices, Work, staged_bytes

OVERLAP: Final = 4.0
"""Reading and computing run side by side: the slower one counts, softly, as the 4-norm of both. A hard maximum and
a plain sum fit the measured runs worse; between 3 and 6 it makes no difference that could be seen."""


def together(*seconds: float) -> float:
    """The time of things that run side by side: about the longest of them."""
    longest = max(seconds, default=0.0)
    if longest == 0.0:
        return 0.0
    return float(longest * sum((part / longest) ** OVERLAP for part in seconds) ** (1 / OVERLAP))


def matrix_seconds(parts: Mapping[str, Matrices], width: int, rates: Rates, used: float = 1.0) -> float:
    """Time to multiply by all ``parts`` for ``width`` tokens; ``used`` is the share of them that is read."""
    total = 0.0
    for kind, part in parts.items():
        if width <= VECTOR_WIDTH:
            operations = part.weights * used * rates.instructions[kind] * (width + rates.unpacking)
            total += together(part.size * used / rates.bandwidth, operations / rates.arithmetic)
        else:
            total += together(part.size * used / rates.tiles, 2 * part.weights * columns(width) / rates.tensor[kind])
    return total


def attention_seconds(caches: tuple[Cache, ...], width: int, depth: float, rates: Rates) -> float:
    """Time to look at ``depth`` tokens for each of ``width`` tokens."""
    total = 0.0
    for cache in caches:
        seen = cache.seen(depth)
        moved = cache.row if width <= VECTOR_ATTENTION_WIDTH else staged_bytes(cache)
        total += together(seen * moved / rates.cache, seen * width * cache.flops / rates.attention)
    return total


def expert_seconds(work: Work, width: int, rates: Rates) -> float:
    """Time of the experts.

    The vector kernel reads an expert anew for each token that uses it; the tile kernel reads those that are touched,
    and computes with whole tiles of them, however few tokens each got.
    """
    total, touched = 0.0, work.experts_touched(width)
    for kind, part in work.experts.items():
        if width <= EXPERT_VECTOR_WIDTH.get(kind, VECTOR_WIDTH):
            used = work.expert_share * width
            operations = part.weights * used * rates.instructions[kind] * (1 + rates.unpacking)
            bandwidth = rates.bandwidth if width == 1 else rates.experts
            total += together(part.size * used / bandwidth, operations / rates.arithmetic)
        else:
            computed = max(work.expert_share * width, touched * min(columns(width), TILES[-1]))
            operations = 2 * part.weights * computed
            total += together(part.size * touched / rates.experts, operations / rates.tensor[kind])
    return total


def pass_seconds(work: Work, rates: Rates, *, width: int = 1, depth: float = 0.0, outputs: int | None = None) -> float:
    """Time of one pass of the model over ``width`` tokens of one slot with ``depth`` tokens in its window.

    ``outputs`` is for how many of them the successor is asked: all when not given, as in decoding.
    """
    asked = width if outputs is None else outputs
    kept = 1 + min(asked, width) if work.state else 0
    return (
        rates.layer_s * work.layers
        + matrix_seconds(work.dense, width, rates)
        + expert_seconds(work, width, rates)
        + matrix_seconds(work.output, asked, rates)
        + attention_seconds(work.caches, width, depth, rates)
        + work.state * kept / rates.bandwidth
    )


def draft_seconds(work: Work, rates: Rates, *, depth: float = 0.0) -> float:
    """Time of one pass of the model's own draft head, which yields one drafted token."""
    caches = (work.draft_cache,) if work.draft_cache else ()
    return (
        rates.draft_s
        + matrix_seconds(work.draft, 1, rates)
        + matrix_seconds(work.output, 1, rates)
        + attention_seconds(caches, 1, depth, rates)
    )
