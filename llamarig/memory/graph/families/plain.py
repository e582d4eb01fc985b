"""Attention, then a feed-forward part or experts, in every layer: what most architectures are, with their differences.

Each :class:`Variant` was read in src/models/<name>.cpp; what a file's tensors tell (biases, norms of Q and K, joint
matrices) is asked of the header.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from llamarig.memory.graph import blocks, ops
from llamarig.memory.graph.blocks import Attention
from llamarig.memory.graph.builder import Builder
from llamarig.memory.graph.tensors import Tensor

Feed = Callable[[Builder, Tensor, int], Tensor]
"""The second half of a layer: normed rows in, rows out."""


def always(_b: Builder, _block: int) -> bool:
    """Every layer turns its queries and keys by their positions."""
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """What one architecture does otherwise than llama."""

    feed: Feed = blocks.feed_forward
    embedding_scaled: bool = False
    query_scaled: bool = False
    residual_scaled: bool = False
    mean: bool = False
    """Norms take the mean away (LayerNorm)."""
    norms: Literal["before", "after", "both"] = "before"
    """Where the norms of a layer's two halves stand."""
    parallel: bool = False
    """Both halves read the same normed rows."""
    rope: Callable[[Builder, int], bool] = always
    soft_cap: bool = False
    """Attention scores are capped."""
    residual_first: bool = False
    """The last sum of a layer names the residual before the new rows."""
    late_rows: bool = False
    """The rows that go on to the output are chosen after the last layer, not in it."""
    logits: tuple[str, ...] = ()
    """Operations over the logits."""


LLAMA = Variant()


def build(b: Builder, variant: Variant = LLAMA) -> None:
    """The graph of one pass."""
    stream = blocks.embeddings(b, scaled=variant.embedding_scaled)
    positions = blocks.positions(b)
    full = blocks.attention_inputs(b)
    sliding = blocks.attention_inputs(b, sliding=True) if b.shape.window else full
    wanted = blocks.output_rows(b)
    last = len(b.shape.trunk) - 1
    for block in b.layers():
        inputs = sliding if b.layer(block).sliding else full
        rows = wanted if block == last and not variant.late_rows else None
        stream = _layer(b, variant, stream, block, (positions, inputs, rows))
    if variant.late_rows:
        # The caller may read every row of it (``t_h_nextn``), so its place is never used again.
        stream.is_output = True
        stream = ops.get_rows(stream, wanted)
    finish(b, blocks.norm(b, stream, -1, op=_op(variant)), variant.logits)


def finish(b: Builder, normed: Tensor, operations: tuple[str, ...] = ()) -> Tensor:
    """The logits, and what is done to them."""
    normed.is_output = True
    rows = ops.mul_mat(b.weight("output.weight", b.shape.embedding, b.shape.vocabulary), normed)
    if b.has("output.bias"):
        rows = ops.add(rows, b.weight("output.bias", b.shape.vocabulary))
    for op in operations:
        rows = ops.elementwise(op, rows)
    rows.is_output = True
    return b.expand(rows)


def _op(variant: Variant) -> str:
    return "norm" if variant.mean else "rms_norm"


def _layer(
    b: Builder, variant: Variant, stream: Tensor, block: int, given: tuple[Tensor, Attention, Tensor | None]
) -> Tensor:
    positions, inputs, wanted = given
    op = _op(variant)
    early, late = variant.norms != "after", variant.norms != "before"
    normed = blocks.norm(b, stream, block, op=op) if early else stream
    query, keys, values = projections(b, normed, block)
    if variant.rope(b, block):
        query, keys = blocks.rope(query, positions), blocks.rope(keys, positions)
    if variant.query_scaled:
        query = ops.elementwise("scale", query)
    k_first = bool(b.shape.window)
    result = blocks.attend(b, inputs, block, query, keys, values, soft_cap=variant.soft_cap, k_first=k_first)
    if wanted is not None:
        result, stream = ops.get_rows(result, wanted), ops.get_rows(stream, wanted)
        normed = ops.get_rows(normed, wanted) if variant.parallel else normed
    if variant.parallel:
        return ops.add(ops.add(variant.feed(b, normed, block), stream), result)
    if late:
        result = blocks.norm(b, result, block, op=op)
    between = ops.add(_scaled(variant, result), stream)
    result = variant.feed(b, blocks.norm(b, between, block, op=op) if early else between, block)
    if late:
        result = after_norm(b, result, block)
    result = _scaled(variant, result)
    return ops.add(between, result) if variant.residual_first else ops.add(result, between)


def _scaled(variant: Variant, source: Tensor) -> Tensor:
    return ops.elementwise("scale", source) if variant.residual_scaled else source


def after_norm(b: Builder, source: Tensor, block: int) -> Tensor:
    """The norm behind the feed-forward part, which belongs to no layer in the engine's eyes (``il`` is -1)."""
    weight = b.weight(f"blk.{block}.post_ffw_norm.weight", source.extent[0], block=block)
    return ops.mul(ops.elementwise("rms_norm", source), weight)


def projections(b: Builder, source: Tensor, block: int) -> tuple[Tensor, Tensor, Tensor]:
    """Query, K and V by heads, Q and K normed where the model has norms for them: over a head, or over all of them."""
    layer = b.layer(block)
    known = b.header.by_name.get(f"blk.{block}.attn_q_norm.weight")
    if known is not None and known.dims[0] != layer.k_head:
        query = blocks.project(b, source, block, "attn_q", layer.k_head * layer.heads)
        keys = blocks.project(b, source, block, "attn_k", layer.k_head * layer.kv_heads)
        values = blocks.project(b, source, block, "attn_v", layer.v_head * layer.kv_heads)
        return (
            ops.reshape(blocks.norm(b, query, block), layer.k_head, layer.heads, b.tokens),
            ops.reshape(blocks.norm(b, keys, block), layer.k_head, layer.kv_heads, b.tokens),
            ops.reshape(values, layer.v_head, layer.kv_heads, b.tokens),
        )
    query, keys, values = blocks.qkv(b, source, block)
    if known is not None:
        query, keys = blocks.norm(b, query, block), blocks.norm(b, keys, block)
    return query, keys, values
