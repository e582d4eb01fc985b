"""Multi-head latent attention: deepseek2 and what is built like it (Kimi K2, GLM 4.7 Flash).

Source: src/models/deepseek2.cpp.
"""

from __future__ import annotations

from typing import NamedTuple

from llamarig.memory.graph import blocks, ops
from llamarig.memory.graph.blocks import Attention
from llamarig.memory.graph.builder import Builder
from llamarig.memory.graph.families.plain import finish
from llamarig.memory.graph.families.variants import by_header
from llamarig.memory.graph.tensors import Tensor

_ROTARY = 64


class Widths(NamedTuple):
    """Elements of the parts of a head."""

    rank: int
    """The compressed row that K and V come from."""
    rope: int
    """The part of a query or key that is turned by its position."""
    plain: int
    """The rest of it."""
    value: int


def build(b: Builder) -> None:
    """The graph of one pass; a file from before the absorbed form (no ``key_length_mla``) keeps whole K and V."""
    absorbed = b.header.integer(".attention.key_length_mla", 0) > 0
    widths = _widths(b, absorbed)
    stream = blocks.embeddings(b)
    scale = None
    if b.number("attention.temperature_scale"):
        scale = b.input("f32", 1, 1, b.tokens)
    positions = blocks.positions(b)
    given = _Given(blocks.attention_inputs(b, only_k=absorbed), scale, widths)
    wanted = blocks.output_rows(b)
    last = len(b.shape.trunk) - 1
    feed = by_header(b)
    attend = _absorbed if absorbed else _expanded
    for block in b.layers():
        parts = _parts(b, blocks.norm(b, stream, block), positions, block, widths)
        result = attend(b, given, block, parts)
        if block == last:
            result, stream = ops.get_rows(result, wanted), ops.get_rows(stream, wanted)
        between = ops.add(result, stream)
        stream = ops.add(feed(b, blocks.norm(b, between, block), block), between)
    finish(b, blocks.norm(b, stream, -1))


def _widths(b: Builder, absorbed: bool) -> Widths:
    suffix = "_mla" if absorbed else ""
    rope = b.header.integer(".rope.dimension_count", _ROTARY)
    key = b.header.integer(f".attention.key_length{suffix}")
    value = b.header.integer(f".attention.value_length{suffix}")
    return Widths(b.header.integer(".attention.kv_lora_rank"), rope, key - rope, value)


class _Given(NamedTuple):
    """What all layers share."""

    inputs: Attention
    scale: Tensor | None
    widths: Widths


class _Parts(NamedTuple):
    query: Tensor
    """Without the turned part; so is ``compressed``."""
    query_turned: Tensor
    compressed: Tensor
    key_turned: Tensor


def _parts(b: Builder, source: Tensor, positions: Tensor, block: int, widths: Widths) -> _Parts:
    heads, tokens = b.layer(block).heads, b.tokens
    low = b.header.integer(".attention.q_lora_rank", 0)
    whole = heads * (widths.plain + widths.rope)
    if low and not b.has(f"blk.{block}.attn_q.weight"):
        query = blocks.norm(b, blocks.project(b, source, block, "attn_q_a", low), block)
        query = blocks.project(b, query, block, "attn_q_b", whole)
    else:
        query = blocks.project(b, source, block, "attn_q", whole)
    joint = blocks.project(b, source, block, "attn_kv_a_mqa", widths.rank + widths.rope)
    return _Parts(
        ops.view(query, (widths.plain, heads, tokens, 1)),
        blocks.rope(ops.view(query, (widths.rope, heads, tokens, 1)), positions),
        blocks.norm(b, ops.view(joint, (widths.rank, tokens, 1, 1)), block),
        blocks.rope(ops.view(joint, (widths.rope, 1, tokens, 1)), positions),
    )


def _absorbed(b: Builder, given: _Given, block: int, parts: _Parts) -> Tensor:
    """Queries are brought to the compressed rows, which are all that the cache keeps."""
    inputs, scale, widths = given
    layer, work = b.layer(block), b.work
    matrix = b.weight(f"blk.{block}.attn_k_b.weight", widths.plain, widths.rank, layer.heads, block=block)
    query = ops.permute(ops.mul_mat(matrix, ops.permute(parts.query)))
    query = ops.concat(query, parts.query_turned)
    values = ops.reshape(parts.compressed, widths.rank, 1, b.tokens)
    keys = ops.concat(values, parts.key_turned)
    if scale is not None:
        query = ops.mul(query, scale)
    for tensor in (query, values, keys):
        b.expand(tensor)
    width = widths.rank + widths.rope
    cache = b.cache(block, work.cache_k, width, inputs.cells)
    blocks.store(b, cache, keys, inputs.k_rows)
    seen = ops.view(cache, (width, 1, inputs.cells, work.streams))
    seen_v = ops.view(seen, (widths.rank, 1, inputs.cells, work.streams))
    if not work.flash_attention:
        # Turned back before ``blocks.heads`` turns it: the cache keeps no transposed V.
        seen_v = ops.permute(ops.cont(ops.transpose(ops.permute(seen_v))))
    expanded = ("attn_v_b", block, widths.value)
    result = blocks.heads(b, query, seen, seen_v, inputs.mask, expanded=expanded)
    return blocks.project(b, result, block, "attn_output", b.shape.embedding)


def _expanded(b: Builder, given: _Given, block: int, parts: _Parts) -> Tensor:
    """K and V of every head, as the cache keeps them."""
    inputs, scale, widths = given
    heads, tokens = b.layer(block).heads, b.tokens
    both = blocks.project(b, parts.compressed, block, "attn_kv_b", heads * (widths.plain + widths.value))
    values = ops.cont(ops.view(both, (widths.value, heads, tokens, 1)))
    query = ops.concat(parts.query, parts.query_turned)
    repeated = ops.repeat(parts.key_turned, widths.rope, heads, tokens)
    keys = ops.concat(ops.view(both, (widths.plain, heads, tokens, 1)), repeated)
    if scale is not None:
        query = ops.mul(query, scale)
    return blocks.attend(b, inputs, block, query, keys, values)
