"""Tensors of a compute graph, and the order in which they are computed.

A tensor here has no data: only what the scheduler and the allocator look at. Source: ``struct ggml_tensor`` and
``ggml_visit_parents_graph`` in ggml/src/ggml.c.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from llamarig.memory.units import row_bytes

Extent: TypeAlias = tuple[int, int, int, int]
"""Elements in each of the four dimensions, the fastest first."""

ELEMENT_BYTES: Final = {"f32": 4, "f16": 2, "bf16": 2, "i32": 4, "i64": 8}
"""Bytes of one element of the types that a graph computes with; stored types have blocks, and bytes of their own."""

NOWHERE: Final = -1
"""No backend: not decided yet, or in no buffer."""

VIEWS: Final = frozenset({"view", "reshape", "permute", "transpose"})
"""Operations that compute nothing; source: ``ggml_is_view_op`` in ggml/src/ggml-backend.cpp."""


class Tensor:
    """One tensor. What the scheduler and the allocator note on it is set on first use."""

    root: Tensor | None = None
    """The tensor whose data this one is a view of."""
    packed = True
    """Whether its elements lie one behind the other, in order."""
    is_input = False
    """Written by the caller before each pass."""
    is_output = False
    """Read by the caller after each pass, so that nothing may take its place."""
    lies = NOWHERE
    """Backend whose buffer already holds its data (a weight, a cache, a view of one)."""
    is_weight = False
    pinned = NOWHERE
    """Backend that the graph's author chose for it."""
    before_layer: int | None = None
    """Number of the layer that begins after it, if one does."""
    host_only = False
    """Whether no card can compute it."""
    staging = 0
    """Bytes that a card needs behind its data while it computes it."""
    seen = False
    backend = NOWHERE
    """Backend that the scheduler chose."""
    children = 0
    """Inputs of later nodes that still read it."""
    views = 0
    """Views of it that are still read."""
    held = 0
    """Bytes that the allocator holds for it."""
    owned = False
    """Whether the allocator still holds memory for it."""
    offset = 0
    arena = 0

    def __init__(self, op: str, kind: str, extent: Extent, inputs: Sequence[Tensor] = (), size: int = -1) -> None:
        self.op = op
        self.kind = kind
        self.extent = extent
        self.inputs = list(inputs)
        if size < 0:
            rows = extent[1] * extent[2] * extent[3]
            each = ELEMENT_BYTES.get(kind)
            size = rows * (row_bytes(kind, extent[0]) if each is None else extent[0] * each)
        self.size = size
        """Bytes of its data."""

    @property
    def elements(self) -> int:
        """Number of elements."""
        first, second, third, fourth = self.extent
        return first * second * third * fourth

    @property
    def rows(self) -> int:
        """Number of rows: elements over the first dimension."""
        return self.extent[1] * self.extent[2] * self.extent[3]


class Graph:
    """Nodes in the order of computation, and leafs: what is not computed."""

    def __init__(self) -> None:
        self.nodes: list[Tensor] = []
        self.leafs: list[Tensor] = []

    def expand(self, tensor: Tensor) -> Tensor:
        """Append ``tensor`` after everything it reads; what is there already stays where it is."""
        if not tensor.seen:
            tensor.seen = True
            for source in tensor.inputs:
                if not source.seen:
                    self.expand(source)
            (self.leafs if tensor.op == "none" else self.nodes).append(tensor)
        return tensor


def graph_input(kind: str, first: int, second: int = 1, third: int = 1, fourth: int = 1) -> Tensor:
    """A tensor that the caller writes."""
    tensor = Tensor("none", kind, (first, second, third, fourth))
    tensor.is_input = True
    return tensor


def stored(place: int, extent: Extent, size: int, *, kind: str = "stored", weight: bool = True) -> Tensor:
    """A weight or a cache of ``size`` bytes in a buffer of backend ``place``."""
    tensor = Tensor("none", kind, extent, (), size)
    tensor.lies = place
    tensor.is_weight = weight
    return tensor
