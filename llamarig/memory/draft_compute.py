"""The compute buffer of the draft context."""

from __future__ import annotations

from llamarig.memory.compute import attention_bytes, feed_forward_bytes, input_bytes, mask_bytes, stage_bytes
from llamarig.memory.settings import Settings
from llamarig.memory.shape import Shape
from llamarig.memory.units import F32_BYTES
from llamarig.memory.window import Window


def draft_compute_bytes(shape: Shape, settings: Settings, window: Window) -> int:
    """Bytes of the MTP context's compute buffer; 0 without MTP.

    max(mask + inputs + stage + attention, feed-forward): the head is one layer, so its mask is
    free again when the feed-forward part runs. That part keeps four K rows besides, which
    gives the published 130 MiB per 512 tokens of the 27B model. Source: ``graph_mtp`` in src/models/qwen35.cpp.
    """
    if not settings.mtp or not shape.mtp_layers:
        return 0
    layers = shape.mtp_layers
    staged = settings.backend == "cuda" and settings.era.staging
    stage = stage_bytes(layers, settings.draft_k, settings.draft_v, window) if staged else 0
    attention = attention_bytes(shape, layers, window, rotated=False)
    keys = max(layer.k_width for layer in layers)
    feed_forward = feed_forward_bytes(shape, layers, window) + 4 * keys * window.ubatch * F32_BYTES
    prefill = mask_bytes(shape, settings, window) + input_bytes(shape, window) + stage + attention
    return max(prefill, feed_forward)
