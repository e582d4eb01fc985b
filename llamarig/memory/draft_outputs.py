"""Rows that an MTP head makes the host keep: those it reads, and those it answers with.

Source: ``output_reserve`` in src/llama-context.cpp; ``llama_set_embeddings_nextn`` in common/speculative.cpp.
"""

from __future__ import annotations

from llamarig.memory.settings import Settings
from llamarig.memory.shape import Shape
from llamarig.memory.units import F32_BYTES


def draft_output_bytes(shape: Shape, settings: Settings) -> int:
    """Bytes: a hidden row of the target for every token of a batch, and of the head a hidden row and logits a slot.

    A server's log shows the first rows only; the buffer grows with the first batch. Nothing without MTP.
    """
    if not settings.mtp or not shape.mtp_layers:
        return 0
    read = settings.batch * shape.embedding
    return (read + settings.parallel * (shape.embedding + shape.vocabulary)) * F32_BYTES
