"""Gemma 4: two kinds of layers, later ones without a cache of their own, per-layer inputs, experts beside a dense part.

Source: src/models/gemma4.cpp.
"""

from __future__ import annotations

from llamarig.memory.graph import blocks, ops
from llamarig.memory.graph.blocks import Attention
from llamarig.memory.graph.builder import Builder
from llamarig.memory.graph.experts import experts
from llamarig.memory.graph.families.plain import after_norm, finish
from llamarig.memory.graph.families.variants import CAPPED
from llamarig.memory.graph.tensors import Tensor


def build(b: Builder) -> None:
    """The graph of one pass."""
    stream = ops.elementwise("scale", blocks.embeddings(b))
    positions = blocks.positions(b)
    inputs = (blocks.attention_inputs(b), blocks.attention_inputs(b, sliding=True))
    wanted = blocks.output_rows(b)
    width = b.header.integer(".embedding_length_per_layer_input", 0)
    given = per_layer_inputs(b, stream, width) if width else None
    for block in b.layers():
        result = attention(b, blocks.norm(b, stream, block), positions, inputs[b.layer(block).sliding], block)
        between = ops.add(blocks.norm(b, result, block), stream)
        result = after_norm(b, _second_half(b, between, block), block)
        stream = ops.add(result, between)
        if given is not None:
            stream = ops.add(stream, _with_own_input(b, stream, given, block))
        if b.has(f"blk.{block}.layer_output_scale.weight", default=True):
            stream = ops.mul(stream, b.weight(f"blk.{block}.layer_output_scale.weight", 1, block=block))
    normed = blocks.norm(b, stream, -1)
    normed.is_output = True
    capped = f"{b.shape.architecture}.final_logit_softcapping" in b.header.metadata
    finish(b, ops.get_rows(normed, wanted), CAPPED if capped else ())


def per_layer_inputs(b: Builder, stream: Tensor, width: int) -> Tensor:
    """One row of ``width`` for each layer and token, from a table and from the embedding."""
    count, tokens = len(b.shape.trunk), b.tokens
    table = b.weight("per_layer_token_embd.weight", width * count, b.shape.vocabulary)
    rows = ops.reshape(ops.get_rows(table, b.input("i32", tokens)), width, count, tokens)
    rows = b.expand(ops.elementwise("scale", rows))
    matrix = b.weight("per_layer_model_proj.weight", b.shape.embedding, width * count, block=0)
    projected = ops.reshape(ops.elementwise("scale", ops.mul_mat(matrix, stream)), width, count, tokens)
    projected = ops.mul(ops.elementwise("rms_norm", projected), b.weight("per_layer_proj_norm.weight", width, block=0))
    both = ops.elementwise("scale", ops.add(projected, rows))
    return ops.cont(ops.permute(both))


def cache_owner(b: Builder, block: int) -> int:
    """The layer whose cache is read: a later one reads that of the last of its kind that keeps one."""
    layer = b.layer(block)
    if layer.k_width:
        return block
    kept = sum(1 for item in b.shape.trunk if item.k_width)
    return kept - (2 if layer.sliding else 1)


def attention(b: Builder, source: Tensor, positions: Tensor, inputs: Attention, block: int) -> Tensor:
    """Normed and turned queries and keys, normed values; V is K where the model has no matrix for it."""
    layer, owner = b.layer(block), cache_owner(b, block)
    head, heads = b.layer(owner).k_head, layer.heads
    query = ops.reshape(blocks.project(b, source, block, "attn_q", head * heads), head, heads, b.tokens)
    factors = None if layer.sliding else b.rope_factors(block)
    query = blocks.rope(blocks.norm(b, query, block), positions, factors)
    if owner != block:
        return blocks.attend(b, inputs, block, query, None, None, cache_of=owner, k_first=True)
    projected = blocks.project(b, source, block, "attn_k", head * layer.kv_heads)
    values = projected
    if b.has(f"blk.{block}.attn_v.weight", default=True):
        values = blocks.project(b, source, block, "attn_v", head * layer.kv_heads)
    keys = ops.reshape(projected, head, layer.kv_heads, b.tokens)
    values = ops.elementwise("rms_norm", ops.reshape(values, head, layer.kv_heads, b.tokens))
    keys = blocks.rope(blocks.norm(b, keys, block), positions, factors)
    return blocks.attend(b, inputs, block, query, keys, values, k_first=True)


def _second_half(b: Builder, source: Tensor, block: int) -> Tensor:
    dense = blocks.feed_forward(b, blocks.norm(b, source, block), block)
    router = f"blk.{block}.ffn_gate_inp"
    if not b.has(f"{router}.weight"):
        return dense
    dense = blocks.norm(b, dense, block)
    normed = blocks.norm(b, source, block)
    weighed = ops.elementwise("scale", ops.elementwise("rms_norm", source))
    weighed = ops.mul(weighed, b.weight(f"{router}.scale", source.extent[0], block=block))
    count = b.header.integer(".expert_count", 0)
    logits = ops.mul_mat(b.matrix(block, "ffn_gate_inp", source.extent[0], count), weighed)
    return ops.add(dense, blocks.norm(b, experts(b, normed, block, logits=logits), block))


def _with_own_input(b: Builder, stream: Tensor, given: Tensor, block: int) -> Tensor:
    """The layer's own input, gated by the stream and brought to its width."""
    width, tokens, _, _ = given.extent
    gate = ops.elementwise("unary", blocks.project(b, stream, block, "inp_gate", width))
    own = ops.mul(gate, ops.view(given, (width, tokens, 1, 1), packed=True))
    return blocks.norm(b, blocks.project(b, own, block, "proj", b.shape.embedding), block)
