"""What tells layers apart that have the same dimensions and tensors."""

from __future__ import annotations

from collections.abc import Hashable

from llamarig.gguf.header import Header
from llamarig.memory.graph.families.gemma3n import SPARSE
from llamarig.memory.graph.families.llama4 import NO_ROPE

_WITHOUT_POSITIONS = frozenset({"afmoe", "llama4", "smollm3"})
"""Architectures that turn no queries in every fourth layer."""


def mark(header: Header, block: int) -> Hashable:
    """Equal for layers that compute alike, as far as their numbers decide it."""
    arch = header.architecture
    if block < header.integer(".n_deepstack_layers", 0):
        return block
    if arch == "gemma3n":
        return block < SPARSE
    return arch in _WITHOUT_POSITIONS and (block + 1) % NO_ROPE == 0
