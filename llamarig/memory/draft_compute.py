"""The compute buffer of an MTP head whose graph is not known: an upper bound."""

from __future__ import annotations

from llamarig.gguf.header import Header
from llamarig.memory.compute import attention_bytes, host_compute_bytes, layer_bytes
from llamarig.memory.settings import Settings
from llamarig.memory.shape import Shape
from llamarig.memory.units import F32_BYTES
from llamarig.memory.window import Window

_ROWS = 4
"""Hidden rows that the head joins and norms before its layer."""


def draft_compute_bytes(header: Header, shape: Shape, settings: Settings, window: Window) -> int:
    """Bytes of the MTP context's compute buffer; 0 without MTP.

    Its largest layer, attention to its own cache, one row of logits a slot and a copy to sample from, and the target's
    last rows beside those of the tokens. Source: the ``graph_mtp`` of each architecture in src/models/.
    """
    if not settings.mtp or not shape.mtp_layers:
        return 0
    first = len(shape.trunk)
    numbers = range(first, len(shape.layers))
    largest = max(layer_bytes(header, shape, settings, window, number) for number in numbers)
    attention = attention_bytes(shape.mtp_layers, settings, window, (settings.draft_k, settings.draft_v))
    joined = _ROWS * window.ubatch * shape.embedding * F32_BYTES
    copied = settings.parallel + 1 if settings.samples_drafts else 0
    logits = (settings.parallel + copied) * shape.vocabulary * F32_BYTES
    return host_compute_bytes(header, shape, settings, window) + attention + largest + joined + logits
