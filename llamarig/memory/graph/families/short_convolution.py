"""Short convolutions and attention: lfm2 and lfm2moe. Source: src/models/lfm2.cpp."""

from __future__ import annotations

from typing import Literal

from llamarig.memory.graph import blocks, ops, states
from llamarig.memory.graph.builder import Builder
from llamarig.memory.graph.experts import Routing, experts
from llamarig.memory.graph.states import States
from llamarig.memory.graph.tensors import Tensor

_SIGMOID = 2
"""LLAMA_EXPERT_GATING_FUNC_TYPE_SIGMOID."""


def build(b: Builder) -> None:
    """The graph of one pass."""
    stream = b.expand(blocks.embeddings(b))
    recurrent = states.state_inputs(b)
    inputs = blocks.attention_inputs(b, sliding=bool(b.shape.window))
    positions = blocks.positions(b)
    wanted = blocks.output_rows(b)
    last = len(b.shape.trunk) - 1
    for block in b.layers():
        before = stream
        normed = blocks.norm(b, stream, block)
        if b.layer(block).recurrent:
            stream = convolution(b, recurrent, normed, block)
        else:
            query, keys, values = blocks.qkv(b, normed, block)
            query, keys = blocks.norm(b, query, block), blocks.norm(b, keys, block)
            query, keys = blocks.rope(query, positions), blocks.rope(keys, positions)
            stream = blocks.attend(b, inputs, block, query, keys, values)
        if block == last:
            stream, before = ops.get_rows(stream, wanted), ops.get_rows(before, wanted)
        stream = ops.add(before, stream)
        normed = blocks.norm(b, stream, block)
        if b.has(f"blk.{block}.ffn_gate_inp.weight"):
            result = experts(b, normed, block, _routing(b))
        else:
            result = blocks.feed_forward(b, normed, block)
        stream = ops.add(stream, result)
    blocks.head(b, stream)


def _routing(b: Builder) -> Routing:
    gating: Literal["softmax", "sigmoid"] = (
        "sigmoid" if b.header.integer(".expert_gating_func", 0) == _SIGMOID else "softmax"
    )
    return Routing(gating=gating)


def convolution(b: Builder, inputs: States, source: Tensor, block: int) -> Tensor:
    """A short convolution between two gates (``build_shortconv_block``)."""
    width, slots = b.shape.embedding, b.work.sequences
    tokens = b.tokens // slots
    columns = b.header.integer(".shortconv.l_cache") - 1
    source = ops.reshape(source, width, tokens, slots)
    joint = ops.mul_mat(b.matrix(block, "shortconv.in_proj", width, 3 * width), source)
    part = (width, tokens, slots, 1)
    gate, out_gate, stream = (ops.view(joint, part) for _ in range(3))
    stream = ops.transpose(ops.mul(gate, stream))
    cache = states.state_cache(b, block, columns * width)
    past = ops.reshape(states.read(b, inputs, cache), columns, width, slots)
    joined = ops.concat(past, stream)
    states.write(b, ops.view(joined, (columns, width, slots, 1)), cache)
    kernel = b.matrix(block, "shortconv.conv", columns + 1, width)
    result = ops.mul(out_gate, states.short_convolution(joined, kernel))
    result = ops.mul_mat(b.matrix(block, "shortconv.out_proj", width, width), result)
    return ops.reshape(result, width, b.tokens)
