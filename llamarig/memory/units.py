"""Units and rounding that the engine uses."""

from __future__ import annotations

from typing import Final

from llamarig.errors import RigError
from llamarig.gguf.tensor_types import BY_NAME

MIB: Final = 1 << 20
F16_BYTES: Final = 2
F32_BYTES: Final = 4

KV_TYPES: Final = ("f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1")
"""Types that the engine takes for K and V; source: ``kv_cache_types`` in common/arg.cpp."""


def pad(value: int, to: int = 256) -> int:
    """``value`` rounded up to a multiple of ``to``; source: GGML_PAD in ggml/include/ggml.h."""
    return value + -value % to


def row_bytes(kind: str, elements: int) -> int:
    """Bytes of a row of ``elements`` stored as the KV type ``kind``; source: ``ggml_row_size``.

    Raises :class:`RigError` for a type that no KV cache can have and for a row that blocks do not divide.
    """
    if kind not in KV_TYPES:
        raise RigError(what=f"{kind!r} is no KV cache type", fix=f"use one of {', '.join(KV_TYPES)}")
    stored = BY_NAME[kind.upper()]
    if elements % stored.block:
        raise RigError(
            what=f"{kind} cannot hold this model's KV rows of {elements} elements",
            why=f"it stores blocks of {stored.block}",
            fix="use f16",
        )
    return elements // stored.block * stored.size


def is_quantised(kind: str) -> bool:
    """Whether a KV type stores blocks rather than single numbers."""
    return BY_NAME[kind.upper()].block > 1
