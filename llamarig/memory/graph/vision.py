"""The buffers of an image encoder: a vision transformer with a merger, as Qwen's models from 3 on have it.

They are reserved at start for a square image of 46 x 46 tokens, and again for a bigger one when it comes. Source:
``clip_graph_qwen3vl::build`` in tools/mtmd/models/qwen3vl.cpp, ``warmup`` and ``set_warmup_n_tokens`` in
tools/mtmd/clip.cpp and clip-model.h. Its flash attention is taken for granted: without, one image takes gigabytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt
from typing import Final

from llamarig.gguf.header import Header
from llamarig.memory.graph import ops
from llamarig.memory.graph.allocator import Allocator
from llamarig.memory.graph.cuda import ALIGNMENT
from llamarig.memory.graph.schedule import Machine, schedule
from llamarig.memory.graph.tensors import Extent, Graph, Tensor, graph_input, stored
from llamarig.memory.split import Split

KIND: Final = "qwen3vl_merger"
"""The projector's type whose graph is known."""

WARM_UP_TOKENS: Final = 46 * 46
"""Tokens of the image for which buffers are reserved at start."""

_LAYERS = 2
"""Layers that are built: all are alike, and the peak is in each."""

_MERGE = 2
"""The graph is written for tokens of 2 x 2 patches."""

_HOST_ALIGNMENT = 32
_COLOURS = 3


@dataclass(frozen=True, slots=True)
class Tower:
    """Dimensions of an encoder."""

    width: int
    inner: int
    heads: int
    patch: int
    merge: int
    """Patches on a side of what becomes one token."""
    image: int
    """Pixels on a side of the images that the positions were trained for."""
    output: int


def tower_of(header: Header | None) -> Tower | None:
    """The encoder of a projector's file; None when its graph is not known."""
    if header is None or header.metadata.get("clip.projector_type") != KIND:
        return None
    if any("deepstack" in tensor.name for tensor in header.tensors):
        return None
    tower = Tower(
        width=header.integer("clip.vision.embedding_length", 0),
        inner=header.integer("clip.vision.feed_forward_length", 0),
        heads=header.integer("clip.vision.attention.head_count", 0),
        patch=header.integer("clip.vision.patch_size", 0),
        merge=header.integer("clip.vision.spatial_merge_size", 2),
        image=header.integer("clip.vision.image_size", 0),
        output=header.integer("clip.vision.projection_dim", 0),
    )
    sizes = (tower.width, tower.inner, tower.heads, tower.patch, tower.merge, tower.image, tower.output)
    sound = all(0 < size <= _MOST for size in sizes) and tower.image >= tower.patch and tower.width >= tower.heads
    return tower if sound and tower.merge == _MERGE else None


_MOST = 1 << 20
"""More than any dimension of an encoder; a header may claim anything."""


def encoder_bytes(tower: Tower, tokens: int = WARM_UP_TOKENS, *, on_card: bool = True) -> Split:
    """Bytes of the encoder's buffers for a square image of so many tokens: on its card, and on the host."""
    side = ceil(sqrt(tokens)) * tower.merge
    cards = 1 if on_card else 0
    nodes, leafs = schedule(_Tower(tower, side).build(), Machine(cards))
    sizes = Allocator([ALIGNMENT] * cards + [_HOST_ALIGNMENT]).run(nodes, leafs)
    return Split(tuple(sizes[:-1]), sizes[-1])


class _Tower:
    """The graph in the making, for an image of ``side`` x ``side`` patches."""

    def __init__(self, tower: Tower, side: int) -> None:
        self.tower = tower
        self.side = side
        self.patches = side * side
        self.graph = Graph()

    def build(self) -> Graph:
        """The graph of one image."""
        tower = self.tower
        stream = ops.add(self._embedded(), self._positions())
        places = graph_input("i32", self.patches * 4)
        for _ in range(_LAYERS):
            stream = self._layer(stream, places)
        merged = tower.width * tower.merge**2
        rows = ops.reshape(_norm(stream), merged, self.patches // tower.merge**2)
        rows = ops.elementwise("unary", _linear(rows, merged, merged))
        result = _linear(rows, merged, tower.output)
        result.is_output = True
        self.graph.expand(result)
        return self.graph

    def _embedded(self) -> Tensor:
        """Two convolutions over the image, one for each of the two frames that a video would have."""
        pixels = self.side * self.tower.patch
        image = graph_input("f32", pixels, pixels, _COLOURS)
        both = ops.add(self._convolved(image), self._convolved(image))
        turned = _cont(ops.permute(both), (2 * self.tower.width, self.side // 2, self.side, 1))
        return ops.add(self._merged(turned), _weight(self.tower.width))

    def _convolved(self, image: Tensor) -> Tensor:
        tower = self.tower
        columns = _COLOURS * tower.patch**2
        patches = Tensor("im2col", "f16", (columns, self.side, self.side, 1), (image,))
        kernel = _weight(columns, tower.width)
        rows = Tensor(
            "mul_mat", "f32", (self.patches, tower.width, 1, 1), (ops.reshape(patches, columns, self.patches), kernel)
        )
        return _cont(
            ops.permute(ops.reshape(rows, self.side, self.side, 1, tower.width)), (self.side, self.side, tower.width, 1)
        )

    def _positions(self) -> Tensor:
        """Learned positions, stretched to the image."""
        tower, side = self.tower, self.side
        trained = tower.image // tower.patch
        learned = stored(0, (tower.width, trained**2, 1, 1), tower.width * trained**2 * 4, kind="f32")
        spread = ops.permute(ops.reshape(learned, tower.width, trained, trained))
        stretched = Tensor("upscale", "f32", (side, side, tower.width, 1), (spread,))
        rows = _cont(ops.permute(stretched), (tower.width, self.patches, 1, 1))
        return self._merged(_cont(rows, (2 * tower.width, side // 2, side, 1)))

    def _merged(self, source: Tensor) -> Tensor:
        """Rows of patches in the order in which they are merged."""
        width, side = 2 * self.tower.width, self.side
        by_pairs = ops.reshape(ops.reshape(source, width, side // 2, side), width, side // 2, 2, side // 2)
        return _cont(ops.permute(by_pairs), (self.tower.width, self.patches, 1, 1))

    def _layer(self, stream: Tensor, places: Tensor) -> Tensor:
        tower = self.tower
        joint = _linear(_norm(stream), tower.width, 3 * tower.width)

        def part() -> Tensor:
            found = ops.view(joint, (tower.width // tower.heads, tower.heads, self.patches, 1))
            found.packed = False
            return found

        query, keys = ops.elementwise("rope", part(), places), ops.elementwise("rope", part(), places)
        values = part()
        for tensor in (query, keys, values):
            self.graph.expand(tensor)
        halves = (ops.cast(ops.permute(keys), "f16"), ops.cast(ops.permute(values), "f16"))
        extent: Extent = (tower.width // tower.heads, tower.heads, self.patches, 1)
        seen = Tensor("flash_attn", "f32", extent, (ops.permute(query), *halves))
        between = ops.add(_linear(ops.reshape(seen, tower.width, self.patches), tower.width, tower.width), stream)
        inner = ops.elementwise("unary", _linear(_norm(between), tower.width, tower.inner))
        return ops.add(between, _linear(inner, tower.inner, tower.width))


def _weight(columns: int, rows: int = 1) -> Tensor:
    return stored(0, (columns, rows, 1, 1), columns * rows * 2)


def _linear(source: Tensor, columns: int, rows: int) -> Tensor:
    """A matrix and its bias."""
    return ops.add(ops.mul_mat(_weight(columns, rows), source), _weight(rows))


def _norm(source: Tensor) -> Tensor:
    """With a mean, a weight and a bias (``clip_graph::build_norm``)."""
    weight = _weight(source.extent[0])
    return ops.add(ops.mul(Tensor("norm", "f32", source.extent, (source,)), weight), weight)


def _cont(source: Tensor, extent: Extent) -> Tensor:
    return Tensor("cont", source.kind, extent, (source,))
