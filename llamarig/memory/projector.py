"""The multimodal projector."""

from __future__ import annotations

from llamarig.gguf.header import Header
from llamarig.memory.graph.vision import WARM_UP_TOKENS, encoder_bytes, tower_of
from llamarig.memory.units import MIB

OVERHEAD_MIB = 97.37
"""What an F16 projector of 884.63 MiB took on top of its file: 982 MiB were measured on the reference machine."""


def encoded_mib(
    file_size: int, header: Header | None, tokens: int | None, *, on_card: bool
) -> tuple[float, float] | None:
    """MiB of a projector on its card and on the host, with the buffers of its encoder; None when its graph is unknown.

    The buffers are for the image that the engine reserves for at start, or for one of ``tokens`` when that is bigger.
    """
    tower = tower_of(header)
    if tower is None:
        return None
    buffers = encoder_bytes(tower, max(WARM_UP_TOKENS, tokens or 0), on_card=on_card)
    card, host = buffers.device / MIB, buffers.host / MIB
    return (card + file_size / MIB, host) if on_card else (0.0, host + file_size / MIB)


def projector_mib(file_size: int) -> float:
    """MiB of a projector whose file has ``file_size`` bytes: the file and its buffers.

    The overhead is measured, for one projector, and holds the process's share on a card of its own as well.
    """
    return file_size / MIB + OVERHEAD_MIB
