"""The parts that most families' graphs are made of, node by node.

Source: the functions of the same names in src/llama-graph.cpp, and ``cpy_k``, ``cpy_v``, ``get_k``, ``get_v`` and the
input builders in src/llama-kv-cache.cpp.
"""

from __future__ import annotations

from dataclasses import dataclass

from llamarig.memory.graph import ops
from llamarig.memory.graph.builder import Builder
from llamarig.memory.graph.cuda import attend_on_card
from llamarig.memory.graph.tensors import Tensor


def norm(b: Builder, source: Tensor, block: int, *, bias: bool = False, op: str = "rms_norm") -> Tensor:
    """Norm, times its weight, plus its bias. ``op`` is "norm" for the one with a mean, which is not in place.

    ``block`` is -1 outside of the layers.
    """
    normed = ops.elementwise(op, source)
    b.pin_norm(normed, block)
    width = source.extent[0]
    name = "output_norm" if block < 0 else f"blk.{block}.norm"
    weight = b.weight(name, width, block=block if block >= 0 else None)
    scaled = ops.mul(normed, weight)
    return ops.add(scaled, weight) if bias else scaled


def project(b: Builder, source: Tensor, block: int, name: str, rows: int) -> Tensor:
    """``blk.<block>.<name>.weight`` times ``source``, plus the bias when the model has one."""
    result = ops.mul_mat(b.matrix(block, name, source.extent[0], rows), source)
    bias = f"blk.{block}.{name}.bias"
    return ops.add(result, b.weight(bias, rows, block=block)) if b.has(bias) else result


def qkv(b: Builder, source: Tensor, block: int, head: int = 0, head_v: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Query, K and V by heads, from one joint matrix where the model has that (``build_qkv``)."""
    layer = b.layer(block)
    head, head_v = head or layer.k_head, head_v or layer.v_head
    tokens = b.tokens
    if b.has(f"blk.{block}.attn_qkv.weight"):
        joint = project(b, source, block, "attn_qkv", head * (layer.heads + layer.kv_heads) + head_v * layer.kv_heads)
        return (
            ops.view(joint, (head, layer.heads, tokens, 1)),
            ops.view(joint, (head, layer.kv_heads, tokens, 1)),
            ops.view(joint, (head_v, layer.kv_heads, tokens, 1)),
        )
    query = project(b, source, block, "attn_q", head * layer.heads)
    keys = project(b, source, block, "attn_k", head * layer.kv_heads)
    values = project(b, source, block, "attn_v", head_v * layer.kv_heads)
    return (
        ops.reshape(query, head, layer.heads, tokens),
        ops.reshape(keys, head, layer.kv_heads, tokens),
        ops.reshape(values, head_v, layer.kv_heads, tokens),
    )


def rope(source: Tensor, positions: Tensor, factors: Tensor | None = None) -> Tensor:
    """Rotary positions; in place when the source is no view. ``factors`` are the model's own, if it has any."""
    return ops.elementwise("rope", source, positions, *(() if factors is None else (factors,)))


def embeddings(b: Builder, *, scaled: bool = False) -> Tensor:
    """The rows of the pass's tokens (``build_inp_embd``); the caller's own rows are an input beside it."""
    width = b.shape.embedding
    tokens = b.input("i32", b.tokens)
    rows = b.input("f32", width, b.tokens)
    table = b.weight("token_embd.weight", width, b.shape.vocabulary)
    result = b.expand(ops.get_rows(table, tokens))
    b.expand(rows)
    if scaled:
        result = ops.elementwise("scale", result)
    return b.expand(result)


def positions(b: Builder, each: int = 1) -> Tensor:
    """``each`` numbers a token (``build_inp_pos``)."""
    return b.input("i32", b.tokens * each)


def output_rows(b: Builder) -> Tensor:
    """Which rows go on to the output (``build_inp_out_ids``)."""
    return b.input("i32", b.work.outputs)


@dataclass(slots=True)
class Attention:
    """The inputs of all attention layers that share one cache (``llm_graph_input_attn_kv``)."""

    cells: int
    """Cells of one stream."""
    k_rows: Tensor
    v_rows: Tensor | None
    mask: Tensor
    k_rotation: Tensor | None = None
    v_rotation: Tensor | None = None


def mask(b: Builder, cells: int) -> Tensor:
    """Cells x tokens of one stream x streams (``build_attn_inp_kq_mask``)."""
    work = b.work
    kind = "f16" if work.flash_attention and work.half_mask else "f32"
    found = b.input(kind, cells, b.tokens // work.streams, 1, work.streams)
    return found if kind == "f16" or not work.flash_attention else ops.cast(found, "f16")


def attention_inputs(b: Builder, *, sliding: bool = False, only_k: bool = False) -> Attention:
    """Row numbers, mask and rotations of one cache; with ``only_k`` of one that keeps no V (``build_attn_inp_k``)."""
    work = b.work
    cells = work.sliding_cells if sliding else work.cells
    layers = [layer for layer in b.shape.layers if layer.k_width and layer.sliding == sliding]
    k_rows = b.input("i64", b.tokens)
    v_rows = None
    if not only_k:
        widest = max((layer.v_width for layer in b.shape.layers), default=0)
        v_rows = b.input("i64", b.tokens if work.flash_attention else b.tokens * widest)
    result = Attention(cells, k_rows, v_rows, mask(b, cells))
    if layers and not only_k:
        if b.rotates_k(layers[0].k_head):
            side = _widest_rotation(layers[0].k_head)
            result.k_rotation = b.input("f32", side, side)
        if b.rotates_v(layers[0].v_head):
            result.v_rotation = b.input("f32", 64, 64)
    return result


def _widest_rotation(head: int) -> int:
    """The greatest power of two times 64 that divides the head; source: ``build_input_k_rot``."""
    side = 64
    while head % (2 * side) == 0:
        side *= 2
    return side


def rotate(source: Tensor, rotation: Tensor | None) -> Tensor:
    """``source`` times a Hadamard matrix (``llama_mul_mat_hadamard`` in src/llama-impl.h)."""
    if rotation is None:
        return source
    side = rotation.extent[0]
    rows = source.elements // side
    flat = ops.reshape(source, side, rows) if source.packed else ops.cont(source, side, rows)
    return ops.reshape(ops.mul_mat(rotation, flat), *source.extent)


def store(b: Builder, cache: Tensor, rows: Tensor, ids: Tensor, *, transposed: bool = False) -> None:
    """Write this pass's rows into a cache (``cpy_k``, ``cpy_v``)."""
    first, second, tokens, _ = rows.extent
    width = first * second
    if transposed:
        flat = ops.reshape(rows, width, tokens) if rows.packed else ops.cont(rows, width, tokens)
        if width < cache.extent[0]:
            flat = Tensor("pad", flat.kind, (cache.extent[0], tokens, 1, 1), (flat,))
        lines = ops.view(cache, (1, cache.elements, 1, 1), op="reshape")
        b.expand(ops.set_rows(lines, ops.reshape(flat, 1, flat.elements), ids))
        return
    flat = ops.view(rows, (width, tokens, 1, 1), size=rows.size)
    target = cache
    if cache.extent[2] > 1:
        target = ops.view(cache, (cache.extent[0], cache.extent[1] * cache.extent[2], 1, 1), op="reshape")
    b.expand(ops.set_rows(target, flat, ids))


def attend(  # noqa: PLR0913, PLR0917 - as many as the engine's function has
    b: Builder,
    inputs: Attention,
    block: int,
    query: Tensor,
    keys: Tensor | None,
    values: Tensor | None,
    *,
    output: str = "attn_output",
    cache_of: int | None = None,
    soft_cap: bool = False,
    k_first: bool = False,
) -> Tensor:
    """Store K and V, attend to all cells and project the result (``build_attn`` over a K and V cache).

    ``output`` is empty where the family projects itself; ``cache_of`` is the layer whose cache is read when this one
    keeps none (then ``keys`` and ``values`` are None); ``k_first`` orders K before V, as the sliding variant does.
    """
    query = rotate(query, inputs.k_rotation)
    keys = None if keys is None else rotate(keys, inputs.k_rotation)
    values = None if values is None else rotate(values, inputs.v_rotation)
    b.expand(query)
    for tensor in (keys, values) if k_first else (values, keys):
        if tensor is not None:
            b.expand(tensor)
    owner = block if cache_of is None else cache_of
    layer = b.layer(owner)
    work = b.work
    widest = layer.v_width if work.flash_attention else max(item.v_width for item in b.shape.layers)
    cache_k = b.cache(owner, work.cache_k, layer.k_width, inputs.cells)
    cache_v = b.cache(owner, work.cache_v, widest, inputs.cells)
    if keys is not None:
        store(b, cache_k, keys, inputs.k_rows)
    if values is not None and inputs.v_rows is not None:
        store(b, cache_v, values, inputs.v_rows, transposed=not work.flash_attention)
    head, head_v, streams = layer.k_head, layer.v_head, work.streams
    seen_k = ops.view(cache_k, (head, layer.kv_heads, inputs.cells, streams))
    if work.flash_attention:
        seen_v = ops.view(cache_v, (head_v, layer.kv_heads, inputs.cells, streams))
    else:
        seen_v = ops.view(cache_v, (inputs.cells, layer.kv_heads, head_v, streams))
    result = heads(b, query, seen_k, seen_v, inputs.mask, soft_cap=soft_cap)
    result = rotate(result, inputs.v_rotation)
    return project(b, result, block, output, b.shape.embedding) if output else result


def heads(  # noqa: PLR0913 - as many as the engine's function has
    b: Builder,
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor,
    *,
    soft_cap: bool = False,
    expanded: tuple[str, int, int] | None = None,
) -> Tensor:
    """Attention of all heads (``build_attn_mha``).

    ``expanded`` names the matrix (block's tensor name, block, width) that latent attention is expanded with.
    """
    streams = keys.extent[3]
    first, count, tokens, _ = query.extent
    query = ops.permute(ops.view(query, (first, count, tokens // streams, streams), size=query.size))
    keys, values = ops.permute(keys), ops.permute(values)
    if b.work.flash_attention:
        result = _flash(b, query, keys, values, mask)
        if expanded:
            result = ops.cont(ops.permute(_expand(b, ops.permute(result), expanded)))
        one, two, three, four = result.extent
        return b.expand(ops.reshape(result, one * two, three * four))
    scores = ops.mul_mat(keys, query)
    if soft_cap:
        for op in ("scale", "unary", "scale"):
            scores = ops.elementwise(op, scores)
    scores = ops.elementwise("soft_max", scores, mask)
    result = ops.mul_mat(values, scores)
    if expanded:
        result = _expand(b, result, expanded)
    one, two, three, four = (turned := ops.permute(result)).extent
    result = ops.cont(turned, one * two, three * four)
    return b.expand(result)


def _expand(b: Builder, source: Tensor, expanded: tuple[str, int, int]) -> Tensor:
    name, block, width = expanded
    weight = b.weight(f"blk.{block}.{name}.weight", source.extent[0], width, source.extent[2], block=block)
    return ops.mul_mat(weight, source)


def _flash(b: Builder, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    if keys.kind == "f32":
        keys = ops.cast(keys, "f16")
    if values.kind == "f32":
        values = ops.cast(values, "f16")
    result = ops.flash_attention(query, keys, values, mask)
    if b.placement.cards and b.work.staging:
        attend_on_card(result)
    return result


def feed_forward(  # noqa: PLR0913 - as many as the engine's function has
    b: Builder,
    source: Tensor,
    block: int,
    *,
    width: int = 0,
    gate: str = "ffn_gate",
    up: str = "ffn_up",
    down: str = "ffn_down",
) -> Tensor:
    """Dense feed-forward part (``build_ffn``): gated where the model has a gate, else one activation.

    A model that lists no tensors is taken to have the gate. ``gate`` is empty for one that never has.
    """
    width = width or b.layer(block).ff
    inner = project(b, source, block, up, _rows(b, f"blk.{block}.{up}.weight", width))
    if gate and b.has(f"blk.{block}.{gate}.weight", default=True):
        inner = ops.gated(project(b, source, block, gate, width), inner)
    elif inner.extent[0] > (wanted := _columns(b, f"blk.{block}.{down}.weight", width)):
        inner = Tensor("glu", "f32", (wanted, *inner.extent[1:]), (inner,))
    else:
        inner = ops.elementwise("unary", inner)
    return project(b, inner, block, down, b.shape.embedding)


def _rows(b: Builder, name: str, default: int) -> int:
    """Rows of a matrix: twice the inner width where gate and up are one."""
    tensor = b.header.by_name.get(name)
    return tensor.dims[1] if tensor else default


def _columns(b: Builder, name: str, default: int) -> int:
    tensor = b.header.by_name.get(name)
    return tensor.dims[0] if tensor else default


def head(b: Builder, source: Tensor, *, normed: bool = True) -> Tensor:
    """Final norm and logits; both are outputs. Ends the graph."""
    result = norm(b, source, -1) if normed else source
    result.is_output = True
    rows = ops.mul_mat(b.weight("output.weight", b.shape.embedding, b.shape.vocabulary), result)
    if b.has("output.bias"):
        rows = ops.add(rows, b.weight("output.bias", b.shape.vocabulary))
    rows.is_output = True
    return b.expand(rows)
