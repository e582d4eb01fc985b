"""The engine's graph allocator: where each tensor of a pass lies, and so how big the buffer is.

Source: ``ggml_dyn_tallocr`` and ``ggml_gallocr_alloc_graph_impl`` in ggml/src/ggml-alloc.c. Buffers of CUDA and of the
CPU have no greatest size, so a buffer is one chunk.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

from llamarig.memory.graph.tensors import Tensor

_ARITHMETIC: Final = ("add", "add_id", "sub", "mul", "div", "sqr", "sqrt", "log", "scale", "fill")
IN_PLACE: Final = frozenset((*_ARITHMETIC, "unary", "rope", "rms_norm", "soft_max"))
"""Operations that may write over an input; source: ``ggml_op_can_inplace``."""

_ENDLESS: Final = 1 << 62


class Arena:
    """One buffer in the making: free blocks by offset, of which the last has no end."""

    def __init__(self, alignment: int) -> None:
        self.alignment = alignment
        self.blocks: list[list[int]] = [[0, _ENDLESS]]
        """Offset and bytes of each free block."""
        self.peak = 0
        """Bytes up to the highest end so far."""

    def take(self, size: int) -> int:
        """Offset of ``size`` bytes: in the smallest block that holds them, in the last one when no other does."""
        blocks = self.blocks
        best, best_size = len(blocks) - 1, _ENDLESS
        for number in range(best):
            room = blocks[number][1]
            if size <= room <= best_size:
                best, best_size = number, room
        block = blocks[best]
        offset = block[0]
        end = offset + size
        block[0] = end
        block[1] -= size
        if not block[1]:
            del blocks[best]
        self.peak = max(self.peak, end)
        return offset

    def give(self, offset: int, size: int) -> None:
        """Free ``size`` bytes at ``offset``, and join them with the free blocks beside them."""
        blocks = self.blocks
        end = offset + size
        for number, block in enumerate(blocks):
            if block[0] + block[1] == offset:
                block[1] += size
                if number + 1 < len(blocks) and blocks[number + 1][0] == end:
                    block[1] += blocks[number + 1][1]
                    del blocks[number + 1]
                return
            if block[0] == end:
                block[0] = offset
                block[1] += size
                if number and sum(blocks[number - 1]) == offset:
                    blocks[number - 1][1] += block[1]
                    del blocks[number]
                return
        place = next((number for number, block in enumerate(blocks) if block[0] >= offset), len(blocks))
        blocks.insert(place, [offset, size])


class Allocator:
    """All buffers of one graph: one :class:`Arena` a backend, cards first, the host last."""

    def __init__(self, alignments: Sequence[int], *, with_states: bool = True) -> None:
        self.arenas = [Arena(alignment) for alignment in alignments]
        self._host = len(alignments) - 1
        self._live: dict[int, Tensor] = {}
        self._with_states = with_states
        self.states: dict[int, Hashable] = {}
        """What was held when each layer began, see :meth:`_state`; noted where that is asked for."""

    def run(self, nodes: Sequence[Tensor], leafs: Sequence[Tensor]) -> list[int]:
        """Place every tensor in the order of computation; bytes of each buffer."""
        for leaf in leafs:
            self._place(leaf)
        _count(nodes)
        for node in nodes:
            if node.root is None and not node.owned:
                self._place(node)
            for source in node.inputs:
                source.children -= 1
                if not source.children and not source.views:
                    self._leave(source)
            if node.before_layer is not None and self._with_states:
                self.states[node.before_layer] = self._state()
        return [arena.peak for arena in self.arenas]

    def _state(self) -> Hashable:
        """All that decides where later tensors go: free blocks, and the places of what is alive, by age."""
        blocks = tuple(tuple(map(tuple, arena.blocks)) for arena in self.arenas)
        return blocks, tuple(
            (tensor.offset, tensor.held, tensor.arena) for tensor in self._live.values() if tensor.held
        )

    def _place(self, tensor: Tensor) -> None:
        if tensor.owned or tensor.root is not None or tensor.lies >= 0:
            return
        tensor.owned = True
        self._live[id(tensor)] = tensor
        if tensor.op in IN_PLACE and self._reuse(tensor):
            return
        backend = tensor.backend
        arena = self.arenas[backend]
        size = tensor.size if backend == self._host else tensor.size + tensor.staging
        tensor.held = size + -size % arena.alignment
        tensor.arena = backend
        tensor.offset = arena.take(tensor.held)

    def _reuse(self, tensor: Tensor) -> bool:
        """Whether ``tensor`` could be put in the place of an input that nothing else reads.

        A view is never such an input: the engine looks whether the view itself was allocated, and none ever is.
        """
        for source in tensor.inputs:
            if (
                source.owned
                and source.children == 1
                and not source.views
                and not source.is_output
                and source.extent == tensor.extent
                and source.kind == tensor.kind
            ):
                arena = self.arenas[source.arena]
                size = tensor.size + -tensor.size % arena.alignment
                tensor.arena, tensor.offset, tensor.held = source.arena, source.offset, size
                source.owned = False
                del self._live[id(source)]
                if source.held > size:
                    arena.give(source.offset + size, source.held - size)
                return True
        return False

    def _leave(self, tensor: Tensor) -> None:
        """Nothing reads ``tensor`` any more: free it, or the tensor that it is the last view of."""
        root = tensor.root
        if root is not None:
            root.views -= 1
            if root.views or root.children:
                return
            tensor = root
        if tensor.owned and not tensor.is_output:
            tensor.owned = False
            del self._live[id(tensor)]
            self.arenas[tensor.arena].give(tensor.offset, tensor.held)


def _count(nodes: Sequence[Tensor]) -> None:
    """Count who reads each tensor; what only keeps another one alive is no view of it."""
    for node in nodes:
        if node.root is not None and node.op != "none":
            node.root.views += 1
        for source in node.inputs:
            source.children += 1
