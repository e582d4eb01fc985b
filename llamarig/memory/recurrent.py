"""The recurrent state: convolution and state rows of every recurrent layer."""

from __future__ import annotations

from llamarig.memory import compressed, families
from llamarig.memory.placement.caches import state_at
from llamarig.memory.settings import Settings
from llamarig.memory.shape import Layer, Shape
from llamarig.memory.split import Split, total
from llamarig.memory.units import F32_BYTES


def _row_bytes(shape: Shape, layer: Layer) -> int:
    """Bytes of one copy of one layer's state: R + S in f32, or what its compressors hold."""
    if shape.architecture in families.COMPRESSED:
        return compressed.state_bytes(shape, layer)
    return (shape.conv_elements + shape.state_elements) * F32_BYTES if layer.recurrent else 0


def state_bytes(shape: Shape) -> int:
    """Bytes of one copy of the state of one slot."""
    return sum(_row_bytes(shape, layer) for layer in shape.trunk)


def state_copies(shape: Shape, settings: Settings) -> int:
    """Copies of the state: slots x (1 + snapshots), also with a unified KV cache.

    Snapshots are the draft's n_max where the architecture can roll back, else none. Source: the
    constructor of ``llama_memory_recurrent`` in src/llama-memory-recurrent.cpp; the clamp in the
    constructor of ``llama_context``.
    """
    snapshots = settings.snapshots if shape.architecture in families.ROLLBACK else 0
    return settings.parallel * (1 + snapshots)


def recurrent_by_layer(shape: Shape, settings: Settings) -> list[int]:
    """Bytes of all copies, block by block from the first."""
    copies = state_copies(shape, settings)
    return [copies * _row_bytes(shape, layer) for layer in shape.trunk]


def recurrent_bytes(shape: Shape, settings: Settings) -> Split:
    """Bytes of all copies by place."""
    sizes = recurrent_by_layer(shape, settings)
    return total(state_at(shape, settings, number, size) for number, size in enumerate(sizes) if size)
