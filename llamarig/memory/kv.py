"""The KV cache: K and V of every attention layer."""

from __future__ import annotations

from collections.abc import Iterable

from llamarig.memory import compressed, families
from llamarig.memory.cache_types import Kinds, require_types
from llamarig.memory.placement.caches import kv_at
from llamarig.memory.settings import Settings
from llamarig.memory.shape import Layer, Shape
from llamarig.memory.split import Split, total
from llamarig.memory.units import row_bytes
from llamarig.memory.window import Window


def cached(shape: Shape) -> tuple[Layer, ...]:
    """Layers of the target's cache; source: the layer filters of ``create_memory`` in src/llama-model.cpp."""
    return shape.trunk if shape.architecture in families.TRUNK_ONLY else shape.layers


def padded_v(shape: Shape, settings: Settings) -> int:
    """Elements that every V row is widened to: without flash attention as many as the widest layer's; else 0.

    Source: TAG_V_CACHE_VARIABLE in src/llama-kv-cache.cpp.
    """
    return 0 if settings.flash_attention else max((layer.v_head * layer.kv_heads for layer in shape.layers), default=0)


def cell_bytes(layer: Layer, kinds: Kinds, widest: int) -> int:
    """Bytes of one cell of a layer: its row of K, its row of V, and those of its indexer."""
    size = row_bytes(kinds.k, layer.k_width)
    # A latent layer has K alone; one without heads has neither, but is widened all the same.
    if layer.v_width or (layer.keeps and not layer.k_width):
        size += row_bytes(kinds.v, max(layer.v_width, widest))
    return size + row_bytes(kinds.k, layer.index_k) + row_bytes(kinds.v, layer.index_v)


def layer_bytes(shape: Shape, settings: Settings, window: Window, layers: Iterable[Layer], kinds: Kinds) -> list[int]:
    """Bytes of each layer's cache: streams x cells x cell.

    Layers with a sliding window keep only their window and one pass. Source: the constructors of
    ``llama_kv_cache``, ``llama_kv_cache_iswa``, ``llama_kv_cache_dsa`` and ``llama_kv_cache_msa`` in src/.
    """
    require_types(shape, kinds)
    sliding = window.sliding_cells(shape, settings) if shape.window else window.cells
    widest = padded_v(shape, settings)
    return [
        window.streams * (sliding if layer.sliding else window.cells) * cell_bytes(layer, kinds, widest)
        for layer in layers
    ]


def kv_by_layer(shape: Shape, settings: Settings, window: Window) -> list[int]:
    """Bytes of the target's KV cache, block by block from the first."""
    kinds = Kinds(settings.cache_k, settings.cache_v)
    if shape.architecture in families.COMPRESSED:
        require_types(shape, kinds)
        return compressed.kv_by_layer(shape, settings, window)
    return layer_bytes(shape, settings, window, cached(shape), kinds)


def kv_bytes(shape: Shape, settings: Settings, window: Window) -> Split:
    """Bytes of the target's KV cache by place."""
    sizes = kv_by_layer(shape, settings, window)
    return total(kv_at(shape, settings, number, size) for number, size in enumerate(sizes) if size)
