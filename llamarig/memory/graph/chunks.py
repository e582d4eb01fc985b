"""Gated DeltaNet in chunks, where the engine gives up its fused operation.

It does when, in a short pass, a layer on the host would be computed on a card. Source: ``build_delta_net_chunking`` in
src/models/delta-net-base.cpp, ``resolve_fused_ops`` in src/llama-context.cpp.
"""

from __future__ import annotations

from typing import Final

from llamarig.memory.graph import ops
from llamarig.memory.graph.builder import Builder
from llamarig.memory.graph.tensors import Tensor

_CHUNK: Final = 64
"""Tokens of one chunk."""
_PROBED: Final = 16
"""Tokens of each slot in the pass that the engine tries the fused operation with."""
_BORROWED: Final = 32
"""Tokens from which a card computes with weights that lie in RAM."""


def is_fused(b: Builder) -> bool:
    """Whether the engine keeps the fused operation; snapshots of the state need it in any case."""
    place = b.placement
    apart = (
        place.cards > 0
        and place.offload
        and any(layer.recurrent and place.of(number) == place.cards for number, layer in enumerate(b.shape.trunk))
    )
    return b.work.snapshots > 0 or not apart or b.work.sequences * _PROBED < _BORROWED


def chunked(  # noqa: PLR0913, PLR0917 - as many as the engine's function has
    query: Tensor, keys: Tensor, values: Tensor, gate: Tensor, beta: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    """The output and the state after the last chunk."""
    width, heads, tokens, slots = values.extent
    count = -(-tokens // _CHUNK)
    lanes = heads * slots

    def padded(source: Tensor) -> Tensor:
        extent = (source.extent[0], count * _CHUNK, heads, slots)
        return Tensor("pad", "f32", extent, (ops.permute(source),))

    def by_chunk(source: Tensor) -> Tensor:
        return ops.reshape(source, source.extent[0], _CHUNK, count, lanes)

    query, keys, values, gate, beta = (
        padded(source) for source in (ops.elementwise("scale", query), keys, values, gate, beta)
    )
    values_beta, keys_beta = by_chunk(ops.mul(values, beta)), by_chunk(ops.mul(keys, beta))
    query, keys = by_chunk(query), by_chunk(keys)
    sums = ops.elementwise("cumsum", _turned(by_chunk(gate)))
    decay = ops.repeat(ops.reshape(sums, 1, _CHUNK, count, lanes), _CHUNK, _CHUNK, count, lanes)
    decay = ops.elementwise("unary", ops.elementwise("tri", ops.elementwise("sub", decay, sums)))
    among_keys = ops.mul(ops.mul_mat(keys, keys_beta), decay)
    to_keys = ops.elementwise("tri", ops.mul(ops.mul_mat(keys, query), decay))
    solved = _solved(ops.elementwise("tri", among_keys))
    values = ops.mul_mat(_turned(values_beta), solved)
    grown = ops.elementwise("unary", sums)
    keys_decayed = ops.mul_mat(ops.mul(_turned(keys_beta), grown), solved)
    query = ops.mul(query, _turned(grown))
    last = ops.cont(ops.view(sums, (1, 1, count, lanes)))
    last_grown = ops.transpose(ops.elementwise("unary", last))
    rest = ops.elementwise("unary", ops.elementwise("sub", sums, last))
    keys = _turned(ops.mul(keys, _turned(ops.elementwise("unary", rest))))
    state = ops.reshape(state, width, width, 1, lanes)
    turned = _turned(values)
    for _ in range(count):
        seen = ops.mul_mat(_slice(keys_decayed), state)
        fresh = ops.elementwise("sub", _slice(turned), seen)
        inner = ops.mul_mat(fresh, _slice(to_keys))
        output = ops.add(ops.mul_mat(state, _slice(query)), inner)
        written = ops.view(values, values.extent, op="set", packed=True)
        written.inputs.append(output)
        values = written
        added = ops.mul_mat(_slice(keys), fresh)
        state = ops.add(ops.mul(state, _slice(last_grown)), added)
    output = ops.permute(ops.view(values, (width, tokens, heads, slots)))
    return output, ops.reshape(state, width, width, heads, slots)


def _turned(source: Tensor) -> Tensor:
    return ops.cont(ops.transpose(source))


def _slice(source: Tensor) -> Tensor:
    first, second, _, fourth = source.extent
    return ops.view(source, (first, second, 1, fourth))


def _solved(among: Tensor) -> Tensor:
    """The inverse of one plus a lower triangle."""
    identity = ops.elementwise("fill", ops.view(among, (_CHUNK, 1, 1, 1)))
    identity = Tensor("diag", "f32", (_CHUNK, _CHUNK, 1, 1), (identity,))
    left = ops.add(among, identity)
    right = ops.elementwise("unary", among)
    return ops.add(Tensor("solve_tri", "f32", right.extent, (left, right)), identity)
