"""Drafters that are models of their own: what they are asked to do, what they add to the target and share with it."""

from __future__ import annotations

from dataclasses import replace

from llamarig.errors import RigError
from llamarig.gguf.header import Header
from llamarig.memory.draft_outputs import read_layers
from llamarig.memory.families import READERS
from llamarig.memory.placement.layers import places
from llamarig.memory.settings import Settings
from llamarig.memory.shape import Shape
from llamarig.memory.split import NOTHING, Split
from llamarig.memory.units import F32_BYTES
from llamarig.memory.window import Window


def drafter_settings(settings: Settings) -> Settings:
    """What a drafter, a model of its own on one card, is asked to do beside a target of these settings.

    Source: ``common_base_params_to_speculative`` in common/speculative.cpp: everything but devices, layers, overrides
    and cache types is inherited.
    """
    return replace(
        settings,
        cache_k=settings.draft_k,
        cache_v=settings.draft_v,
        speculation=None,
        ngram_default=False,
        gpu_layers=None,
        cards=1,
        split_mode="layer",
        tensor_split=(),
        cpu_experts=0,
        overrides=(),
    )


def read_rows(drafter: Header, target: Shape, settings: Settings, window: Window) -> Split:
    """Bytes of the target's rows that are kept for the drafter, one for each layer that it reads.

    Each is an output of the graph, so that the buffer of the target's pass cannot use its place again. Source:
    ``set_embeddings_layer_inp`` in src/llama-context.cpp; seen with a server: the target's buffer grows with the
    first request.
    """
    where = places(target, settings)
    row = window.ubatch * target.embedding * F32_BYTES
    found = NOTHING
    for layer in read_layers(drafter):
        if 0 < layer < len(where):
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
