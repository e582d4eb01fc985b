"""Drafters that read the target's own rows: what they add to the target, and what they share with it."""

from __future__ import annotations

from typing import Final

from llamarig.errors import RigError
from llamarig.gguf.header import Header
from llamarig.memory.placement.layers import places
from llamarig.memory.settings import Settings
from llamarig.memory.shape import Shape
from llamarig.memory.split import NOTHING, Split
from llamarig.memory.units import F32_BYTES
from llamarig.memory.window import Window

READERS: Final = frozenset({"eagle3", "dflash"})
"""Architectures whose drafters are fed with rows of the target's layers."""


def read_rows(drafter: Header, target: Shape, settings: Settings, window: Window) -> Split:
    """Bytes of the target's rows that are kept for the drafter, one for each layer that it reads.

    Each is an output of the graph, so that the buffer of the target's pass cannot use its place again. Source:
    ``set_embeddings_layer_inp`` in src/llama-context.cpp; seen with a server: the target's buffer grows with the
    first request.
    """
    arch = drafter.architecture
    layers = drafter.metadata.get(f"{arch}.target_layers")
    if arch not in READERS or not isinstance(layers, tuple):
        return NOTHING
    where = places(target, settings)
    row = window.ubatch * target.embedding * F32_BYTES
    found = NOTHING
    for layer in layers:
        if isinstance(layer, int) and 0 < layer < len(where):
            place = where[layer - 1]
            cards = range(settings.cards) if place is not None and settings.split_mode == "tensor" else (place,)
            for card in cards:
                found = found.plus(row, card)
    return found


def check_output(drafter: Header, target: Shape, settings: Settings, card: int) -> None:
    """Raise :class:`RigError` when the drafter uses the target's output matrix and cannot reach it.

    The engine aborts then: its graph has no backend for the card that holds the matrix. Source: ``ctx_other`` in
    src/models/eagle3.cpp and dflash.cpp.
    """
    if drafter.architecture not in READERS or "output.weight" in drafter.by_name or settings.backend == "cpu":
        return
    output = places(target, settings)[-1]
    apart = output != card or (settings.cards > 1 and settings.split_mode == "tensor")
    if output is not None and apart:
        raise RigError(
            what="the drafter has no output matrix of its own, and is not on the card that holds the model's",
            why="the engine aborts when it cannot compute with that one",
            fix="put the drafter on the model's card, the last of several with split-mode: layer (speculation.gpu)",
        )
