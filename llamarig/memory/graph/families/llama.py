"""Plain attention and a feed-forward part in every layer: llama, mistral3, qwen2, qwen3 and their like.

Source: src/models/llama.cpp, qwen2.cpp, qwen3.cpp, mistral3.cpp.
"""

from __future__ import annotations

from llamarig.memory.graph import blocks, ops
from llamarig.memory.graph.builder import Builder


def build(b: Builder) -> None:
    """The graph of one pass."""
    stream = blocks.embeddings(b)
    positions = blocks.positions(b)
    inputs = blocks.attention_inputs(b)
    wanted = blocks.output_rows(b)
    last = len(b.shape.trunk) - 1
    for block in b.layers():
        before = stream
        normed = blocks.norm(b, stream, block)
        query, keys, values = blocks.qkv(b, normed, block)
        if b.has(f"blk.{block}.attn_q_norm.weight", default=b.shape.architecture in _NORMED):
            query = blocks.norm(b, query, block)
            query = blocks.rope(query, positions)
            keys = blocks.rope(blocks.norm(b, keys, block), positions)
        else:
            query, keys = blocks.rope(query, positions), blocks.rope(keys, positions)
        stream = blocks.attend(b, inputs, block, query, keys, values)
        if block == last:
            stream, before = ops.get_rows(stream, wanted), ops.get_rows(before, wanted)
        between = ops.add(stream, before)
        normed = blocks.norm(b, between, block)
        stream = ops.add(blocks.feed_forward(b, normed, block), between)
    blocks.head(b, stream)


_NORMED = frozenset({"qwen3"})
