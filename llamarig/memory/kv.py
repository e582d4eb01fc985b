"""The KV cache: K and V of every attention layer."""

from __future__ import annotations

from llamarig.memory import families
from llamarig.memory.settings import Settings
from llamarig.memory.shape import Shape
from llamarig.memory.split import NOTHING, Split, first_on_device
from llamarig.memory.units import row_bytes
from llamarig.memory.window import Window


def kv_bytes(shape: Shape, settings: Settings, window: Window) -> Split:
    """Bytes of the target's KV cache.

    layers x streams x cells x (row of K + row of V); layers with a sliding window keep only
    their window and one pass; without flash attention every V row is as wide as the widest.
    Source: the constructor of ``llama_kv_cache`` in src/llama-kv-cache.cpp, with the layer
    filters of ``create_memory`` in src/llama-model.cpp.
    """
    sliding = window.sliding_cells(shape, settings) if shape.window else window.cells
    widest = 0 if settings.flash_attention else max((layer.v_width for layer in shape.layers), default=0)
    layers = shape.trunk if shape.architecture in families.INTERVAL else shape.layers
    first = first_on_device(shape, settings)
    total = NOTHING
    for number, layer in enumerate(layers):
        if not layer.k_width:
            continue
        row = row_bytes(settings.cache_k, layer.k_width)
        if layer.v_width:
            row += row_bytes(settings.cache_v, max(layer.v_width, widest))
        cells = sliding if layer.sliding else window.cells
        total = total.plus(window.streams * cells * row, on_device=number >= first)
    return total
