"""Plain attention and a feed-forward part or experts in every layer: llama, mistral3, qwen2, qwen3.

Source: src/models/llama.cpp, mistral3.cpp, qwen2.cpp, qwen3.cpp.
"""

from __future__ import annotations

from typing import Final

from llamarig.memory.graph import blocks, ops
from llamarig.memory.graph.builder import Builder
from llamarig.memory.graph.experts import Routing, experts
from llamarig.memory.graph.tensors import Tensor

_NORMED: Final = frozenset({"qwen3"})
"""Architectures that norm Q and K, for a header that lists no tensors."""


def build(b: Builder) -> None:
    """The graph of one pass."""
    stream = blocks.embeddings(b)
    positions = blocks.positions(b)
    temperature = b.input("f32", 1, 1, b.tokens) if _is_tempered(b) else None
    inputs = blocks.attention_inputs(b)
    wanted = blocks.output_rows(b)
    last = len(b.shape.trunk) - 1
    for block in b.layers():
        before = stream
        query, keys, values = _heads(b, blocks.norm(b, stream, block), positions, block)
        if temperature is not None:
            query = ops.mul(query, temperature)
        stream = blocks.attend(b, inputs, block, query, keys, values)
        if block == last:
            stream, before = ops.get_rows(stream, wanted), ops.get_rows(before, wanted)
        between = ops.add(stream, before)
        stream = ops.add(_feed(b, blocks.norm(b, between, block), block), between)
    blocks.head(b, stream)


def _heads(b: Builder, source: Tensor, positions: Tensor, block: int) -> tuple[Tensor, Tensor, Tensor]:
    query, keys, values = blocks.qkv(b, source, block)
    if b.has(f"blk.{block}.attn_q_norm.weight", default=b.shape.architecture in _NORMED):
        query = blocks.rope(blocks.norm(b, query, block), positions)
        return query, blocks.rope(blocks.norm(b, keys, block), positions), values
    return blocks.rope(query, positions), blocks.rope(keys, positions), values


def _feed(b: Builder, source: Tensor, block: int) -> Tensor:
    if not b.has(f"blk.{block}.ffn_gate_inp.weight", default=b.shape.experts_used > 0):
        return blocks.feed_forward(b, source, block)
    return experts(b, source, block, Routing(scaled=b.number("expert_weights_scale") not in {0.0, 1.0}))


def _is_tempered(b: Builder) -> bool:
    """Whether queries are scaled by their position."""
    return b.shape.architecture == "mistral3" and b.number("attention.temperature_scale") != 0.0
