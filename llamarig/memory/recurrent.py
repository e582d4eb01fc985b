"""The recurrent state: convolution and state rows of every recurrent layer."""

from __future__ import annotations

from llamarig.memory import families
from llamarig.memory.settings import Settings
from llamarig.memory.shape import Shape
from llamarig.memory.split import NOTHING, Split, first_on_device
from llamarig.memory.units import F32_BYTES


def state_bytes(shape: Shape) -> int:
    """Bytes of one copy of the state of one slot: recurrent layers x (R + S) in f32."""
    layers = sum(layer.recurrent for layer in shape.trunk)
    return layers * (shape.conv_elements + shape.state_elements) * F32_BYTES


def recurrent_bytes(shape: Shape, settings: Settings) -> Split:
    """Bytes of all copies: slots x (1 + snapshots), also with a unified KV cache.

    Snapshots are the draft's n_max where the architecture can roll back, else none. Source: the
    constructor of ``llama_memory_recurrent`` in src/llama-memory-recurrent.cpp; the clamp in the
    constructor of ``llama_context``.
    """
    snapshots = settings.snapshots if shape.architecture in families.ROLLBACK else 0
    row = (shape.conv_elements + shape.state_elements) * F32_BYTES
    first = first_on_device(shape, settings)
    total = NOTHING
    for number, layer in enumerate(shape.trunk):
        if layer.recurrent:
            total = total.plus(settings.parallel * (1 + snapshots) * row, on_device=number >= first)
    return total
