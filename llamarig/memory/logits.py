"""The rows of logits that one pass may yield."""

from __future__ import annotations

from llamarig.memory.settings import Settings
from llamarig.memory.shape import Shape
from llamarig.memory.units import F32_BYTES


def logit_rows(settings: Settings) -> int:
    """Rows: slots x (1 + the longest draft), at most a batch.

    Source: ``server_output_limits`` in tools/server/server-context.cpp.
    """
    return min(settings.parallel * (1 + settings.longest_draft), max(settings.batch, settings.parallel))


def logit_bytes(shape: Shape, settings: Settings, rows: int | None = None) -> int:
    """Bytes of the logits in f32: rows x vocabulary x 4."""
    return (logit_rows(settings) if rows is None else rows) * shape.vocabulary * F32_BYTES
