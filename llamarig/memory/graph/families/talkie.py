"""talkie: plain attention and a feed-forward part, and the normed embedding added again, scaled, after every layer.

Source: src/models/talkie.cpp.
"""

from __future__ import annotations

from llamarig.memory.graph import blocks, ops
from llamarig.memory.graph.builder import Builder
from llamarig.memory.graph.tensors import Tensor


def build(b: Builder) -> None:
    """The graph of one pass."""
    stream = first = _normed(blocks.embeddings(b))
    positions = blocks.positions(b)
    inputs = blocks.attention_inputs(b)
    wanted = blocks.output_rows(b)
    last = len(b.shape.trunk) - 1
    for block in b.layers():
        before, again = stream, first
        query, keys, values = blocks.qkv(b, _normed(stream), block)
        query, keys = blocks.rope(query, positions), blocks.rope(keys, positions)
        query, keys = blocks.norm(b, query, block), _normed(keys)
        stream = blocks.attend(b, inputs, block, query, keys, values)
        if block == last:
            stream, before, again = (ops.get_rows(each, wanted) for each in (stream, before, again))
        between = ops.add(stream, before)
        stream = ops.add(blocks.feed_forward(b, _normed(between), block), between)
        scale = b.weight(f"blk.{block}.layer_output_scale.weight", 1, block=block)
        stream = ops.add(stream, ops.mul(again, scale))
    result = _normed(stream)
    result.is_output = True
    rows = ops.mul_mat(b.weight("output.weight", b.shape.embedding, b.shape.vocabulary), result)
    rows = ops.elementwise("scale", rows)
    rows.is_output = True
    b.expand(rows)


def _normed(source: Tensor) -> Tensor:
    """A norm without weights, which the engine does not bind to its layer's card."""
    return ops.elementwise("rms_norm", source)
