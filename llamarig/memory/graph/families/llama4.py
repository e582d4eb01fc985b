"""Llama 4: chunked attention in most layers, no positions in every fourth, experts weighed before they compute.

Source: src/models/llama4.cpp.
"""

from __future__ import annotations

from typing import Final

from llamarig.memory.graph import blocks, ops
from llamarig.memory.graph.builder import Builder
from llamarig.memory.graph.experts import Routing
from llamarig.memory.graph.families.plain import finish
from llamarig.memory.graph.families.variants import routed
from llamarig.memory.graph.tensors import Tensor

NO_ROPE: Final = 4
"""``n_no_rope_layer_step`` in src/llama-hparams.h."""
_MAVERICK: Final = 128
"""Experts of the model that norms no queries and keys (LLM_TYPE_17B_128E)."""
_ROUTING: Final = Routing(gating="sigmoid", normed=False, weighed_before=True, selects_logits=True)


def build(b: Builder) -> None:
    """The graph of one pass."""
    stream = blocks.embeddings(b)
    positions = blocks.positions(b)
    chunked = b.shape.window > 0
    scale = b.input("f32", 1, 1, b.tokens) if chunked else None
    full = blocks.attention_inputs(b)
    sliding = blocks.attention_inputs(b, sliding=True) if chunked else full
    wanted = blocks.output_rows(b)
    last = len(b.shape.trunk) - 1
    feed = routed(_ROUTING)
    for block in b.layers():
        query, keys, values = blocks.qkv(b, blocks.norm(b, stream, block), block)
        query, keys = _placed(b, query, keys, (positions, scale), block)
        inputs = sliding if b.layer(block).sliding else full
        result = blocks.attend(b, inputs, block, query, keys, values, k_first=chunked)
        if block == last:
            result, stream = ops.get_rows(result, wanted), ops.get_rows(stream, wanted)
        between = ops.add(result, stream)
        stream = ops.add(feed(b, blocks.norm(b, between, block), block), between)
    finish(b, blocks.norm(b, stream, -1))


def _placed(
    b: Builder, query: Tensor, keys: Tensor, given: tuple[Tensor, Tensor | None], block: int
) -> tuple[Tensor, Tensor]:
    """Turned by their positions and normed without a weight; or, in every fourth layer, scaled queries."""
    positions, scale = given
    if scale is not None and (block + 1) % NO_ROPE == 0:
        return ops.mul(query, scale), keys
    query, keys = blocks.rope(query, positions), blocks.rope(keys, positions)
    if b.header.integer(".expert_count", 0) == _MAVERICK:
        return query, keys
    return ops.elementwise("rms_norm", query), ops.elementwise("rms_norm", keys)
