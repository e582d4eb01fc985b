"""Drafters that read the target's own rows: EAGLE-3 and DFlash.

Both compute logits of every token of a pass, with the target's output matrix where they have none. The engine
reserves the decoder's pass; the encoder, which fuses the target's rows, is smaller. Source: src/models/eagle3.cpp and
src/models/dflash.cpp.
"""

from __future__ import annotations

from llamarig.memory.graph import blocks, ops
from llamarig.memory.graph.builder import Builder
from llamarig.memory.graph.sampling import sample
from llamarig.memory.graph.tensors import Tensor


def eagle3(b: Builder) -> None:
    """One layer behind the token's embedding and the fused row, side by side."""
    width = b.shape.embedding
    tokens = b.input("i32", b.tokens)
    fused = b.input("f32", width, b.tokens)
    table = b.weight("token_embd.weight", width, b.shape.vocabulary)
    embedded = ops.get_rows(table, tokens)
    positions = blocks.positions(b)
    inputs = blocks.attention_inputs(b)
    normed = blocks.norm(b, embedded, 0)
    before = blocks.norm(b, fused, -1)
    both = ops.concat(normed, before)
    if not b.header.metadata.get("eagle3.norm_before_residual", False):
        before = fused
    query, keys, values = blocks.qkv(b, both, 0)
    query, keys = blocks.rope(query, positions), blocks.rope(keys, positions)
    stream = ops.add(blocks.attend(b, inputs, 0, query, keys, values), before)
    stream = ops.add(blocks.feed_forward(b, blocks.norm(b, stream, 0), 0), stream)
    stream.is_output = True
    logits = _logits(b, blocks.norm(b, stream, -1))
    known = b.header.by_name.get("d2t")
    if known is not None:
        # A small vocabulary's logits are spread over the target's.
        whole = ops.elementwise("fill", b.input("f32", 1, b.shape.vocabulary, b.tokens))
        rows = ops.reshape(logits, 1, known.dims[0], b.tokens)
        logits = ops.set_rows(whole, rows, b.weight("d2t", known.dims[0]))
    logits.is_output = True
    b.expand(logits)
    sample(b, logits)


def dflash(b: Builder) -> None:
    """Plain layers over a block of masked tokens; some or all slide."""
    width = b.shape.embedding
    positions = blocks.positions(b)
    wide = blocks.attention_inputs(b)
    sliding = blocks.attention_inputs(b, sliding=True) if b.shape.window else wide
    tokens = b.input("i32", b.tokens)
    stream = ops.get_rows(b.weight("token_embd.weight", width, b.shape.vocabulary), tokens)
    for block in b.layers():
        normed = blocks.norm(b, stream, block)
        query, keys, values = blocks.qkv(b, normed, block)
        query = blocks.rope(blocks.norm(b, query, block), positions)
        keys = blocks.rope(blocks.norm(b, keys, block), positions)
        slides = b.layer(block).sliding
        found = blocks.attend(b, sliding if slides else wide, block, query, keys, values, k_first=bool(b.shape.window))
        between = ops.add(found, stream)
        stream = ops.add(blocks.feed_forward(b, blocks.norm(b, between, block), block), between)
    last = blocks.norm(b, stream, -1)
    last.is_output = True
    logits = _logits(b, last)
    logits.is_output = True
    b.expand(logits)
    sample(b, logits)


def _logits(b: Builder, source: Tensor) -> Tensor:
    known = b.header.by_name.get("output.weight")
    rows = known.dims[-1] if known is not None else b.shape.vocabulary
    return ops.mul_mat(b.weight("output.weight", b.shape.embedding, rows), source)
