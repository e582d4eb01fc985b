"""The multimodal projector."""

from __future__ import annotations

from llamarig.memory.units import MIB

OVERHEAD_MIB = 97.37
"""What an F16 projector of 884.63 MiB took on top of its file: 982 MiB were measured on the reference machine."""


def projector_mib(file_size: int) -> float:
    """MiB of a projector whose file has ``file_size`` bytes: the file and its buffers.

    The overhead is measured, for one projector, and holds the process's share on a card of its own as well.
    """
    return file_size / MIB + OVERHEAD_MIB
