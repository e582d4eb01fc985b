"""The caches of deepseek4: a window of keys, compressed keys, keys of an indexer, and the compressors' state.

Source: ``llama_kv_cache_dsv4`` and ``llama_dsv4_comp_state`` in src/llama-kv-cache-dsv4.cpp. Every sequence has
its own streams, also with a unified KV cache.
"""

from __future__ import annotations

from llamarig.memory.settings import Settings
from llamarig.memory.shape import Layer, Shape
from llamarig.memory.units import F32_BYTES, pad, row_bytes
from llamarig.memory.window import Window

_INDEXED_RATIO = 4
"""Layers that compress by this keep keys of the indexer too (DSV4_CSA_RATIO)."""
_COARSE_RATIO = 128
"""DSV4_HCA_RATIO."""


def kv_by_layer(shape: Shape, settings: Settings, window: Window) -> list[int]:
    """Bytes of each layer's keys: those of the window, and those of the whole context after compression."""
    recent = pad(min(window.cells, shape.window + window.ubatch))
    return [settings.parallel * _cells_bytes(shape, settings, window, layer, recent) for layer in shape.layers]


def _cells_bytes(shape: Shape, settings: Settings, window: Window, layer: Layer, recent: int) -> int:
    key = row_bytes(settings.cache_k, layer.k_width)
    size = recent * key
    if layer.compression in (_INDEXED_RATIO, _COARSE_RATIO):
        cells = pad(max(1, -(-window.cells // layer.compression)))
        size += cells * key
        if layer.compression == _INDEXED_RATIO:
            size += cells * row_bytes(settings.cache_k, shape.index_head)
    return size


def state_elements(shape: Shape, layer: Layer) -> int:
    """f32 elements of one copy of a layer's compressor state: what it sums up, and its weights."""
    head = shape.layers[0].k_head
    if layer.compression == _INDEXED_RATIO:
        return 2 * (2 * _INDEXED_RATIO) * (2 * head + 2 * shape.index_head)
    return 2 * _COARSE_RATIO * head if layer.compression == _COARSE_RATIO else 0


def state_bytes(shape: Shape, layer: Layer) -> int:
    """Bytes of one copy of a layer's compressor state."""
    return state_elements(shape, layer) * F32_BYTES
