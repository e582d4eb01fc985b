"""Bytes by place: on the card, or in the host's RAM."""

from __future__ import annotations

from typing import NamedTuple

from llamarig.memory.settings import Settings
from llamarig.memory.shape import Shape


class Split(NamedTuple):
    """Bytes on the card and in host RAM."""

    device: int
    host: int

    def plus(self, size: int, *, on_device: bool) -> Split:
        """The same with ``size`` more bytes at one of the places."""
        return Split(self.device + size, self.host) if on_device else Split(self.device, self.host + size)


NOTHING = Split(0, 0)


def first_on_device(shape: Shape, settings: Settings) -> int:
    """Number of the first block on the card; blocks and the output after it are there too.

    One more than the last block when only the output is, two more when nothing is. Source:
    ``i_gpu_start`` in ``load_tensors``, src/llama-model.cpp; layers are counted with the MTP head.
    """
    total = len(shape.layers)
    if settings.backend == "cpu":
        return total + 1
    offloaded = total + 1 if settings.gpu_layers is None else min(settings.gpu_layers, total + 1)
    return total + 1 - offloaded
