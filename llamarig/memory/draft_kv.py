"""The KV cache of the draft context."""

from __future__ import annotations

from dataclasses import replace

from llamarig.memory import families
from llamarig.memory.cache_types import Kinds
from llamarig.memory.kv import cached, layer_bytes
from llamarig.memory.placement.caches import kv_at
from llamarig.memory.settings import Settings
from llamarig.memory.shape import Layer, Shape
from llamarig.memory.split import Split, total
from llamarig.memory.window import Window


def _heads_layer(shape: Shape, layer: Layer) -> Layer:
    """An MTP layer as its own context keeps it: dense attention, whatever the target's layers do."""
    latent = shape.architecture in families.LATENT and not layer.v_width
    return replace(
        layer,
        k_width=layer.k_head * layer.kv_heads,
        v_width=0 if latent else layer.v_head * layer.kv_heads,
        index_k=0,
        index_v=0,
    )


def draft_kv_by_layer(shape: Shape, settings: Settings, window: Window) -> list[tuple[int, int]]:
    """Block number and bytes of each layer that the MTP context keeps; nothing without MTP.

    Some architectures have no filter for it and keep every layer once more. Source:
    ``mtp_on_hybrid_qwen`` and the filters in ``create_memory``, src/llama-model.cpp; the type is
    ``--spec-draft-type-k/-v`` and not inherited (common/speculative.cpp).
    """
    if not settings.mtp or not shape.mtp_layers:
        return []
    kinds = Kinds(settings.draft_k, settings.draft_v)
    if shape.architecture in families.MTP:
        start = len(shape.trunk)
        layers: tuple[Layer, ...] = tuple(_heads_layer(shape, layer) for layer in shape.mtp_layers)
    else:
        start = 0
        layers = cached(shape)
    return list(enumerate(layer_bytes(shape, settings, window, layers, kinds), start))


def draft_kv_bytes(shape: Shape, settings: Settings, window: Window) -> Split:
    """Bytes of the MTP context's KV cache by place."""
    sizes = draft_kv_by_layer(shape, settings, window)
    return total(kv_at(shape, settings, number, size) for number, size in sizes if size)
