"""The KV cache of the draft context."""

from __future__ import annotations

from llamarig.memory import families
from llamarig.memory.settings import Settings
from llamarig.memory.shape import Shape
from llamarig.memory.split import NOTHING, Split, first_on_device
from llamarig.memory.units import row_bytes
from llamarig.memory.window import Window


def draft_kv_bytes(shape: Shape, settings: Settings, window: Window) -> Split:
    """Bytes of the MTP context's KV cache: the MTP layers over the whole window; nothing without MTP.

    Some architectures have no filter for it and keep every layer once more. Source:
    ``mtp_on_hybrid_qwen`` and the filters in ``create_memory``, src/llama-model.cpp; the type is
    ``--spec-draft-type-k/-v`` and not inherited (common/speculative.cpp).
    """
    if not settings.mtp or not shape.mtp_layers:
        return NOTHING
    only_mtp = shape.architecture in families.MTP
    first = first_on_device(shape, settings)
    total = NOTHING
    for number, layer in enumerate(shape.layers):
        if not layer.k_width or (only_mtp and not layer.mtp):
            continue
        row = row_bytes(settings.draft_k, layer.k_width)
        if layer.v_width:
            row += row_bytes(settings.draft_v, layer.v_width)
        total = total.plus(window.streams * window.cells * row, on_device=number >= first)
    return total
