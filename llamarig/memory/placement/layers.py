"""Which card a block is on, and with it its weights, its KV cache and its state."""

from __future__ import annotations

import struct
from bisect import bisect_right
from functools import lru_cache
from itertools import accumulate
from math import inf

from llamarig.errors import RigError
from llamarig.memory.settings import Settings
from llamarig.memory.shape import Shape
from llamarig.memory.split import Place

COPIES = 4
"""Graphs in flight with pipeline parallelism: GGML_SCHED_MAX_COPIES in ggml/CMakeLists.txt."""


def single(value: float) -> float:
    """``value`` as the engine's 32-bit float holds it; a layer at a boundary falls to one side by it."""
    return float(struct.unpack("f", struct.pack("f", value))[0])


def places(shape: Shape, settings: Settings) -> tuple[Place, ...]:
    """The card of each block, and of the output as a last one; None: the host.

    Blocks are counted with the MTP head. With ``gpu_layers`` the last ones are on cards; several cards get
    runs of blocks in proportion to ``tensor_split``, or equal ones. In tensor split every block that
    is on cards has number 0: all cards hold a part of it. Source: ``load_tensors`` (``get_layer_buft_list``) in
    src/llama-model.cpp.
    """
    cards = settings.cards if settings.split_mode == "layer" else 1
    layers = 0 if settings.backend == "cpu" else settings.gpu_layers
    return _places(len(shape.layers), layers, settings.shares[:cards])


@lru_cache(maxsize=256)
def _places(blocks: int, gpu_layers: int | None, shares: tuple[float, ...]) -> tuple[Place, ...]:
    total = blocks + 1
    offloaded = total if gpu_layers is None else min(gpu_layers, total)
    first = total - offloaded
    sums = [single(value) for value in accumulate(map(single, shares), lambda a, b: single(a + b))]
    if not 0 < sums[-1] < inf:
        raise RigError(
            what=f"the shares of the cards add up to {sums[-1]:g}",
            where="tensor-split",
            fix="give each card a share between 0.001 and 1,000,000",
        )
    ends = [single(value / sums[-1]) for value in sums]
    found: list[Place] = [None] * first
    found.extend(bisect_right(ends, single(number / offloaded)) for number in range(offloaded))
    return tuple(found)


def copies(shape: Shape, settings: Settings) -> int:
    """Graphs in flight: four with a layer split over cards that hold everything, else one.

    A tensor override of any kind ends it. Source: ``pipeline_parallel`` in the constructor of ``llama_context``,
    src/llama-context.cpp. When the bigger buffers do not fit, the server falls back to one copy and says so in
    its log only.
    """
    whole = settings.gpu_layers is None or settings.gpu_layers > len(shape.layers)
    pipelined = settings.cards > 1 and settings.split_mode == "layer" and settings.backend == "cuda" and whole
    return COPIES if pipelined and settings.pipeline and not settings.overridden else 1
