"""Attention, then a feed-forward part or experts, in every layer: what most architectures are, with their differences.

Each :class:`Variant` was read in src/models/<name>.cpp; what a file's tensors tell (biases, norms of Q and K, joint
matrices) is asked of the header.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

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
    """So are the rows of both halves before they are added."""
    attention_scaled: bool = False
    """So are those of the first half alone, where the header says so (``attention.value_scale``)."""
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
    late_in_layer: bool = False
    """The norm behind the feed-forward part is its layer's, as all others are."""
    tempered: bool = False
    """Queries are scaled by their position where the header gives a scale."""
    turned_first: bool = False
    """Queries and keys are turned by their positions before they are normed."""


LLAMA = Variant()


@dataclass(frozen=True, slots=True)
class _Given:
    """What all layers share."""

    positions: Tensor
    full: Attention
    sliding: Attention
    wanted: Tensor
    last: int
    deep: tuple[Tensor, ...]
    """Rows that are added behind the first layers (DeepStack)."""
    temperature: Tensor | None


def build(b: Builder, variant: Variant = LLAMA) -> None:
    """The graph of one pass."""
    stream, deep = _beginning(b, variant)
    positions = blocks.positions(b, 4 if has_sections(b) else 1)
    tempered = variant.tempered and b.number("attention.temperature_scale") != 0.0
    temperature = b.input("f32", 1, 1, b.tokens) if tempered else None
    full = blocks.attention_inputs(b)
    sliding = blocks.attention_inputs(b, sliding=True) if b.shape.window else full
    wanted = blocks.output_rows(b)
    given = _Given(positions, full, sliding, wanted, len(b.shape.trunk) - 1, deep, temperature)
    for block in b.layers():
        stream = _layer(b, variant, stream, block, given)
        if block < len(deep):
            stream = ops.add(stream, deep[block])
    if variant.late_rows:
        # The caller may read every row of it (``t_h_nextn``), so its place is never used again.
        stream.is_output = True
        stream = ops.get_rows(stream, wanted)
    finish(b, _norm(b, variant, stream, -1), variant.logits)


_SECTIONED: Final = frozenset({"qwen2vl", "qwen3vl", "qwen3vlmoe"})
_MAYBE_SECTIONED: Final = frozenset({"glm4", "glm4moe", "hunyuan-dense", "hunyuan_vl"})
_BOTH: Final = 2


def has_sections(b: Builder) -> bool:
    """Whether a token has four positions; source: ``llama_model_rope_type`` in src/llama-model.cpp."""
    arch = b.shape.architecture
    sections = b.header.metadata.get(f"{arch}.rope.dimension_sections")
    given = isinstance(sections, tuple) and len(sections) >= _BOTH and all(size > 0 for size in sections[:_BOTH])
    return arch in _SECTIONED or (arch in _MAYBE_SECTIONED and given)


def _beginning(b: Builder, variant: Variant) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The embedding; with DeepStack its rows are widened for what an image adds behind the first layers."""
    depth = b.header.integer(".n_deepstack_layers", 0)
    if not depth:
        return blocks.embeddings(b, scaled=variant.embedding_scaled), ()
    width, tokens = b.shape.embedding, b.tokens
    ids, rows = b.input("i32", tokens), b.input("f32", width * (1 + depth), tokens)
    table = b.weight("token_embd.weight", width, b.shape.vocabulary)
    whole = Tensor("pad", "f32", (width * (1 + depth), tokens, 1, 1), (ops.get_rows(table, ids),))
    b.expand(whole)
    b.expand(rows)
    parts = [b.expand(ops.view(whole, (width, tokens, 1, 1)))]
    parts += [ops.view(whole, (width, tokens, 1, 1)) for _ in range(depth)]
    return parts[0], tuple(parts[1:])


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


def _norm(b: Builder, variant: Variant, source: Tensor, block: int) -> Tensor:
    name = "output_norm.bias" if block < 0 else f"blk.{block}.attn_norm.bias"
    return blocks.norm(b, source, block, bias=b.has(name), op=_op(variant))


def _op(variant: Variant) -> str:
    return "norm" if variant.mean else "rms_norm"


def _layer(b: Builder, variant: Variant, stream: Tensor, block: int, given: _Given) -> Tensor:
    early, late = variant.norms != "after", variant.norms != "before"
    inputs = given.sliding if b.layer(block).sliding else given.full
    normed = _norm(b, variant, stream, block) if early else stream
    query, keys, values = _turned(b, variant, normed, block, given)
    k_first = bool(b.shape.window)
    gated = b.has(f"blk.{block}.attn_gate.weight")
    output = "" if gated else "attn_output"
    result = blocks.attend(
        b, inputs, block, query, keys, values, output=output, soft_cap=variant.soft_cap, k_first=k_first
    )
    if variant.attention_scaled and b.number("attention.value_scale") not in {0.0, 1.0}:
        result = ops.elementwise("scale", result)
    if gated:
        result = _through_gate(b, normed, result, block)
    if block == given.last and not variant.late_rows:
        result, stream = ops.get_rows(result, given.wanted), ops.get_rows(stream, given.wanted)
        normed = ops.get_rows(normed, given.wanted) if variant.parallel else normed
    if variant.parallel:
        return ops.add(ops.add(variant.feed(b, normed, block), stream), result)
    if late:
        result = blocks.norm(b, result, block, op=_op(variant))
    between = ops.add(_scaled(variant, result), stream)
    result = variant.feed(b, _norm(b, variant, between, block) if early else between, block)
    if late:
        result = blocks.norm(b, result, block) if variant.late_in_layer else after_norm(b, result, block)
    result = _scaled(variant, result)
    return ops.add(between, result) if variant.residual_first else ops.add(result, between)


def _turned(b: Builder, variant: Variant, source: Tensor, block: int, given: _Given) -> tuple[Tensor, Tensor, Tensor]:
    """Query, K and V of a layer, the first two normed and turned by their positions."""
    positions = given.positions
    op = _op(variant)
    query, keys, values = projections(b, source, block, op="" if variant.turned_first else op)
    if variant.rope(b, block):
        factors = b.rope_factors(block)
        query, keys = blocks.rope(query, positions, factors), blocks.rope(keys, positions, factors)
    if variant.turned_first and b.has(f"blk.{block}.attn_q_norm.weight"):
        query, keys = blocks.norm(b, query, block, op=op), blocks.norm(b, keys, block, op=op)
    if given.temperature is not None:
        query = ops.mul(query, given.temperature)
    return (ops.elementwise("scale", query) if variant.query_scaled else query), keys, values


def _through_gate(b: Builder, source: Tensor, result: Tensor, block: int) -> Tensor:
    """The output matrix behind a gate: one for each element, or one for each head."""
    layer = b.layer(block)
    width = layer.v_head * layer.heads
    known = b.header.by_name[f"blk.{block}.attn_gate.weight"]
    gate = ops.elementwise("unary", blocks.project(b, source, block, "attn_gate", known.dims[1]))
    if known.dims[1] != width:
        apart = ops.reshape(result, layer.v_head, layer.heads, b.tokens)
        result = ops.reshape(ops.mul(apart, ops.reshape(gate, 1, layer.heads, b.tokens)), width, b.tokens)
    else:
        result = ops.mul(result, gate)
    return blocks.project(b, result, block, "attn_output", b.shape.embedding)


def _scaled(variant: Variant, source: Tensor) -> Tensor:
    return ops.elementwise("scale", source) if variant.residual_scaled else source


def after_norm(b: Builder, source: Tensor, block: int) -> Tensor:
    """The norm behind the feed-forward part, which belongs to no layer in the engine's eyes (``il`` is -1)."""
    weight = b.weight(f"blk.{block}.post_ffw_norm.weight", source.extent[0], block=block)
    return ops.mul(ops.elementwise("rms_norm", source), weight)


_NORMED: Final = frozenset({"gemma3", "qwen3", "qwen3moe", "qwen3vl", "qwen3vlmoe"})
"""Architectures that norm Q and K, for a header that lists no tensors."""


def projections(b: Builder, source: Tensor, block: int, *, op: str = "rms_norm") -> tuple[Tensor, Tensor, Tensor]:
    """Query, K and V by heads; Q and K normed where the model has norms for them: over a head, or over all of them.

    ``op`` is empty where the family norms them later.
    """
    layer = b.layer(block)
    name = f"blk.{block}.attn_q_norm.weight"
    known = b.header.by_name.get(name) if op else None
    if known is not None and len(known.dims) == 1 and known.dims[0] != layer.k_head:
        query = blocks.project(b, source, block, "attn_q", layer.k_head * layer.heads)
        keys = blocks.project(b, source, block, "attn_k", layer.k_head * layer.kv_heads)
        values = blocks.project(b, source, block, "attn_v", layer.v_head * layer.kv_heads)
        return (
            ops.reshape(blocks.norm(b, query, block, op=op), layer.k_head, layer.heads, b.tokens),
            ops.reshape(blocks.norm(b, keys, block, op=op), layer.k_head, layer.kv_heads, b.tokens),
            ops.reshape(values, layer.v_head, layer.kv_heads, b.tokens),
        )
    query, keys, values = blocks.qkv(b, source, block)
    if op and b.has(name, default=b.shape.architecture in _NORMED):
        query, keys = blocks.norm(b, query, block, op=op), blocks.norm(b, keys, block, op=op)
    return query, keys, values
