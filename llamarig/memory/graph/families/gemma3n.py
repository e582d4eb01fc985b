"""Gemma 3n: four parallel streams (AltUp), a low-rank side path (LAuReL), per-layer inputs, sparse gates at first.

Source: src/models/gemma3n.cpp.
"""

from __future__ import annotations

from typing import Final

from llamarig.memory.graph import blocks, ops
from llamarig.memory.graph.builder import Builder
from llamarig.memory.graph.families.gemma4 import attention, per_layer_inputs
from llamarig.memory.graph.families.plain import after_norm, finish
from llamarig.memory.graph.families.variants import CAPPED
from llamarig.memory.graph.tensors import Tensor

STREAMS: Final = 4
"""``n_altup`` in src/llama-hparams.h; the first is the active one."""
RANK: Final = 64
"""``laurel_rank`` there."""
OWN: Final = 256
"""``n_embd_altup`` there: width of a layer's own input."""
SPARSE: Final = 10
"""``n_layer_sparsity`` in src/models/models.h: layers from the first whose gates are thinned out."""


def build(b: Builder) -> None:
    """The graph of one pass."""
    stream = blocks.embeddings(b, scaled=True)
    positions = blocks.positions(b)
    inputs = (blocks.attention_inputs(b), blocks.attention_inputs(b, sliding=True))
    given = per_layer_inputs(b, stream, OWN)
    stream = _spread(b, stream)
    for block in b.layers():
        predicted = _predict(b, stream, block)
        active = _slice(predicted)
        normed = blocks.norm(b, active, block)
        side = _side_path(b, normed, block)
        result = attention(b, normed, positions, inputs[b.layer(block).sliding], block)
        result = ops.add(blocks.norm(b, result, block), active)
        between = ops.elementwise("scale", ops.add(result, side))
        result = _feed_forward(b, blocks.norm(b, between, block), block)
        corrected = _correct(b, predicted, ops.add(after_norm(b, result, block), between), block)
        stream = _with_own_input(b, corrected, given, block)
    merged = _merge(b, stream)
    wanted = blocks.output_rows(b)
    finish(b, blocks.norm(b, ops.get_rows(merged, wanted), -1), CAPPED)


def _slice(streams: Tensor) -> Tensor:
    """One of the streams: its rows lie packed."""
    width, tokens, _, _ = streams.extent
    return ops.view(streams, (width, tokens, 1, 1), packed=True)


def _others(streams: Tensor) -> Tensor:
    """All streams but the first."""
    width, tokens, _, _ = streams.extent
    return ops.view(streams, (width, tokens, STREAMS - 1, 1), packed=True)


def _magnitude(source: Tensor) -> Tensor:
    return ops.elementwise("sqrt", ops.sum_rows(ops.elementwise("sqr", source)))


def _rescaled(source: Tensor, target: Tensor) -> Tensor:
    """``source`` with the magnitude ``target``."""
    own = _magnitude(source)
    return ops.elementwise("div", ops.mul(source, target), own)


def _spread(b: Builder, stream: Tensor) -> Tensor:
    width, tokens, _, _ = stream.extent
    target = _magnitude(stream)
    matrices = b.weight("altup_proj.weight", width, width, STREAMS - 1)
    added = ops.mul_mat(matrices, ops.repeat(stream, width, tokens, STREAMS - 1))
    return ops.concat(stream, _rescaled(added, target), 2)


def _merge(b: Builder, stream: Tensor) -> Tensor:
    width = stream.extent[0]
    target = _magnitude(_slice(stream))
    matrices = b.weight("altup_unembd_proj.weight", width, width, STREAMS - 1)
    back = _rescaled(ops.mul_mat(matrices, _others(stream)), target)
    merged = _slice(stream)
    for _ in range(STREAMS - 1):
        merged = ops.add(merged, _slice(back))
    return ops.elementwise("scale", merged)


def _modalities(b: Builder, source: Tensor, block: int) -> Tensor:
    scaled = ops.elementwise("scale", blocks.norm(b, source, block))
    return ops.elementwise("unary", blocks.project(b, scaled, block, "altup_router", STREAMS))


def _predict(b: Builder, stream: Tensor, block: int) -> Tensor:
    modalities = _modalities(b, _slice(stream), block)
    factors = blocks.project(b, modalities, block, "altup_predict_coef", STREAMS * STREAMS)
    factors = ops.reshape(factors, STREAMS, STREAMS, b.tokens)
    turned = ops.cont(ops.permute(stream, to=(1, 2, 0, 3)))
    predicted = ops.mul_mat(turned, factors)
    return ops.add(ops.cont(ops.permute(predicted, to=(0, 2, 1, 3))), stream)


def _correct(b: Builder, predicted: Tensor, activated: Tensor, block: int) -> Tensor:
    width, tokens, _, _ = activated.extent
    modalities = _modalities(b, activated, block)
    innovation = ops.elementwise("sub", activated, _slice(predicted))
    factors = ops.elementwise("scale", blocks.project(b, modalities, block, "altup_correct_coef", STREAMS))
    factors = ops.cont(ops.transpose(factors), 1, tokens, STREAMS)
    repeated = ops.repeat(innovation, width, tokens, STREAMS)
    return ops.add(ops.mul(repeated, factors), predicted)


def _side_path(b: Builder, source: Tensor, block: int) -> Tensor:
    low = blocks.project(b, source, block, "laurel_l", RANK)
    return ops.add(blocks.norm(b, blocks.project(b, low, block, "laurel_r", b.shape.embedding), block), source)


def _feed_forward(b: Builder, source: Tensor, block: int) -> Tensor:
    width = b.layer(block).ff
    up = blocks.project(b, source, block, "ffn_up", width)
    gate = blocks.project(b, source, block, "ffn_gate", width)
    if block < SPARSE:
        gate = _thinned(gate)
    return blocks.project(b, ops.mul(up, ops.elementwise("unary", gate)), block, "ffn_down", b.shape.embedding)


def _thinned(gate: Tensor) -> Tensor:
    """Gates below a row's own cutoff become 0."""
    mean = Tensor("mean", "f32", (1, *gate.extent[1:]), (gate,))
    variance = ops.sum_rows(ops.elementwise("sqr", ops.elementwise("sub", gate, mean)))
    deviation = ops.elementwise("sqrt", ops.elementwise("scale", variance))
    cutoff = ops.add(mean, ops.elementwise("scale", deviation))
    return ops.elementwise("unary", ops.elementwise("sub", gate, cutoff))


def _with_own_input(b: Builder, corrected: Tensor, given: Tensor, block: int) -> Tensor:
    width = b.shape.embedding
    scale = b.weight(f"blk.{block}.altup_correct_scale.weight", width, block=block)
    first = blocks.project(b, ops.mul(_slice(corrected), scale), block, "inp_gate", OWN)
    own = ops.view(given, (OWN, b.tokens, 1, 1), packed=True)
    first = ops.mul(ops.elementwise("unary", first), own)
    first = blocks.norm(b, blocks.project(b, first, block, "proj", width), block)
    return ops.concat(_slice(corrected), ops.add(_others(corrected), first), 2)
