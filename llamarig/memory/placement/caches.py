"""Where the caches lie: a block's KV and state are on the card of the block.

Source: ``model.dev_layer`` in the constructors of ``llama_kv_cache`` and ``llama_memory_recurrent``;
the Meta device for tensor split.
"""

from __future__ import annotations

from llamarig.memory.placement.cuts import kv_parts, shared, state_parts
from llamarig.memory.placement.layers import places
from llamarig.memory.settings import Settings
from llamarig.memory.shape import Shape
from llamarig.memory.split import NOTHING, Split


def kv_at(shape: Shape, settings: Settings, number: int, size: int) -> Split:
    """``size`` bytes of K and V of block ``number`` where they lie."""
    place = places(shape, settings)[number]
    if place is not None and _shares(settings):
        return shared(size, kv_parts(shape, settings, number))
    return NOTHING.plus(size, place)


def state_at(shape: Shape, settings: Settings, number: int, size: int) -> Split:
    """``size`` bytes of the recurrent state of block ``number`` where they lie."""
    place = places(shape, settings)[number]
    if place is not None and _shares(settings):
        return shared(size, state_parts(shape, settings, number))
    return NOTHING.plus(size, place)


def _shares(settings: Settings) -> bool:
    return settings.cards > 1 and settings.split_mode == "tensor"
