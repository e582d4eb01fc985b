"""What a family needs to write down its graph: the model, one pass over it, and where each tensor lies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from llamarig.gguf.header import Header
from llamarig.memory.graph.tensors import Extent, Graph, Tensor, graph_input, stored
from llamarig.memory.placement.tensors import FIRST_BLOCK, INPUTS
from llamarig.memory.shape import Layer, Shape
from llamarig.memory.units import F16_BYTES, F32_BYTES, is_quantised, row_bytes

_ROTATED = 64
"""Heads of a multiple of this many elements are rotated before they are quantised (src/llama-kv-cache.cpp)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """The pass that the engine reserves for, as ``graph_reserve`` in src/llama-context.cpp composes it."""

    tokens: int
    """Tokens of the pass, a multiple of ``sequences``."""
    sequences: int
    """Slots."""
    outputs: int
    """Rows of logits."""
    streams: int
    """1 with a unified cache, else one per slot."""
    cells: int
    """Cells of one stream."""
    sliding_cells: int
    """Cells of one stream of a sliding-window layer."""
    cache_k: str = "f16"
    cache_v: str = "f16"
    flash_attention: bool = True
    rotation: bool = True
    """Whether the engine rotates what it quantises."""
    snapshots: int = 0
    """State snapshots per slot."""
    half_mask: bool = True
    """Whether the mask is made in f16 for flash attention; before, it was made in f32 and copied."""
    pinned: bool = True
    """Whether norms stay on their layer's card; the fit tool forgets that when it measures."""
    staging: bool = True
    """Whether a card's f16 copy of K and V is part of this buffer."""
    flat_projections: bool = True
    """Whether Mamba-2's matrices multiply all rows at once (builds since August 2026)."""
    sampled: int = 0
    """Rows of logits of each slot that a drafter chooses tokens from where it computes them; 0: none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Which backend holds what: cards are numbered from 0, and the host is ``cards``."""

    cards: int
    blocks: tuple[int, ...]
    """Backend of each block, and of the output as a last one."""
    offload: bool = True
    """Whether a card computes long passes with weights that lie in RAM."""
    by_name: Callable[[str], int] | None = None
    """Backend of a tensor, where single tensors are put elsewhere than their block."""

    def of(self, block: int) -> int:
        """Backend of a block, its cache and its weights."""
        return self.blocks[block]

    @property
    def everything_on_cards(self) -> bool:
        """Whether all blocks, the output and every part of them are on cards."""
        return self.by_name is None and self.blocks_on_cards

    @property
    def blocks_on_cards(self) -> bool:
        """Whether all blocks and the output are on cards, whatever single tensors are."""
        return all(place < self.cards for place in self.blocks)


_ROPE_FACTORS = ("rope_freqs.weight", "rope_factors_short.weight")

_LONG = 32
"""Tokens from which norms are no longer pinned when a part of the model is on the host."""


class Builder:
    """The graph in the making, with the model's tensors by name."""

    def __init__(
        self, header: Header, shape: Shape, work: Pass, placement: Placement, chosen: Sequence[int] = ()
    ) -> None:
        self.header = header
        self.shape = shape
        self.work = work
        self.placement = placement
        self.graph = Graph()
        self.tokens = work.tokens
        self.chosen = chosen
        """Numbers of the layers that are built."""
        self._rope_factors: dict[int, Tensor] = {}

    @cached_property
    def pins_norms(self) -> bool:
        """Whether norms are pinned to their layer's backend; source: ``graph_get_cb``, src/llama-context.cpp."""
        return self.work.pinned and self.placement.cards > 0 and (self.tokens < _LONG or self.placement.blocks_on_cards)

    def layers(self) -> Iterator[int]:
        """Numbers of the trunk's layers that are built, in their order; notes where each one begins."""
        for number in self.chosen:
            if self.graph.nodes:
                self.graph.nodes[-1].before_layer = number
            yield number

    def layer(self, number: int) -> Layer:
        """The dimensions of one layer."""
        return self.shape.layers[number]

    def has(self, name: str, default: bool = False) -> bool:
        """Whether the model has a tensor; ``default`` when its header lists none at all."""
        tensors = self.header.by_name
        return name in tensors if tensors else default

    def number(self, key: str) -> float:
        """The header's ``<architecture>.<key>``; 0 when it is missing or no number."""
        value = self.header.metadata.get(f"{self.header.architecture}.{key}")
        return float(value) if isinstance(value, int | float) else 0.0

    def place_of(self, name: str, block: int | None = None) -> int:
        """Backend that holds a weight: that of its block, of the output, or for the embedding the host."""
        placement = self.placement
        if placement.by_name is not None:
            return placement.by_name(name)
        if block is not None:
            return placement.blocks[block]
        if name.startswith(INPUTS):
            return placement.cards
        return placement.blocks[0 if name.startswith(FIRST_BLOCK) else -1]

    def weight(self, name: str, columns: int, rows: int = 1, matrices: int = 1, *, block: int | None = None) -> Tensor:
        """A weight of the model; ``name`` is in full, and so is ``block`` when it is in one.

        A model without an output matrix uses its embedding once more.
        """
        tensors = self.header.by_name
        known = tensors.get(name) or (tensors.get("token_embd.weight") if name == "output.weight" else None)
        size = known.size if known else columns * rows * matrices * (F32_BYTES if rows == 1 else F16_BYTES)
        return stored(self.place_of(name, block), (columns, rows, matrices, 1), size)

    def rope_factors(self, block: int) -> Tensor | None:
        """What the rotary frequencies of a layer are divided by, in models that have it: one tensor for each backend.

        Source: ``get_rope_factors`` in src/llama-model.cpp; those of a long context are as big as those of a short one.
        """
        name = next((name for name in _ROPE_FACTORS if self.has(name)), None)
        if name is None:
            return None
        place = self.place_of(name, block)
        if place not in self._rope_factors:
            self._rope_factors[place] = self.weight(name, self.header.by_name[name].dims[0], block=block)
        return self._rope_factors[place]

    def matrix(self, block: int, name: str, columns: int, rows: int) -> Tensor:
        """``blk.<block>.<name>.weight``."""
        return self.weight(f"blk.{block}.{name}.weight", columns, rows, block=block)

    def cache(self, block: int, kind: str, width: int, cells: int) -> Tensor:
        """K or V of one layer: ``streams`` x ``cells`` rows of ``width``, stored as ``kind``."""
        work = self.work
        extent: Extent = (width, cells, work.streams, 1)
        return stored(
            self.placement.of(block), extent, work.streams * cells * row_bytes(kind, width), kind=kind, weight=False
        )

    def input(self, kind: str, first: int, second: int = 1, third: int = 1, fourth: int = 1) -> Tensor:
        """A tensor that the caller writes."""
        return graph_input(kind, first, second, third, fourth)

    def expand(self, tensor: Tensor) -> Tensor:
        """Append a tensor and what it reads (``ggml_build_forward_expand``)."""
        return self.graph.expand(tensor)

    def pin_norm(self, tensor: Tensor, block: int) -> None:
        """What the engine's callback does with a tensor named "norm"."""
        if self.pins_norms and block >= 0:
            tensor.pinned = self.placement.of(block)

    def rotates_k(self, head: int) -> bool:
        """Whether K (and the query with it) is rotated before it is quantised."""
        return self.work.rotation and is_quantised(self.work.cache_k) and head % _ROTATED == 0

    def rotates_v(self, head: int) -> bool:
        """Whether V is rotated before it is quantised."""
        return self.work.rotation and is_quantised(self.work.cache_v) and head % _ROTATED == 0
