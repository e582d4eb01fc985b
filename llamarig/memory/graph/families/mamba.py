"""State-space layers, alone or with attention: mamba, mamba2, jamba, falcon-h1, granitehybrid, nemotron_h.

Source: src/models/mamba.cpp, jamba.cpp, falcon-h1.cpp, granite-hybrid.cpp, nemotron-h.cpp.
"""

from __future__ import annotations

from llamarig.memory.graph import blocks, ops, states
from llamarig.memory.graph.builder import Builder
from llamarig.memory.graph.experts import Routing, experts, shared_expert
from llamarig.memory.graph.states import States
from llamarig.memory.graph.tensors import Tensor


def pure(b: Builder) -> None:
    """mamba and mamba2: nothing but states."""
    layer = states.mamba2 if b.shape.architecture == "mamba2" else states.mamba
    stream = blocks.embeddings(b)
    recurrent = states.state_inputs(b)
    wanted = blocks.output_rows(b)
    last = len(b.shape.trunk) - 1
    for block in b.layers():
        result = layer(b, recurrent, block, blocks.norm(b, stream, block))
        if block == last:
            result, stream = ops.get_rows(result, wanted), ops.get_rows(stream, wanted)
        stream = ops.add(result, stream)
    blocks.head(b, stream)


def jamba(b: Builder) -> None:
    """jamba: Mamba-1 or attention without positions, then a dense part or experts."""
    stream = blocks.embeddings(b)
    recurrent = states.state_inputs(b)
    inputs = blocks.attention_inputs(b)
    wanted = blocks.output_rows(b)
    last = len(b.shape.trunk) - 1
    for block in b.layers():
        normed = blocks.norm(b, stream, block)
        if b.layer(block).recurrent:
            result = states.mamba(b, recurrent, block, normed)
        else:
            result = blocks.attend(b, inputs, block, *blocks.qkv(b, normed, block))
        if block == last:
            result, stream = ops.get_rows(result, wanted), ops.get_rows(stream, wanted)
        between = ops.add(stream, result)
        normed = blocks.norm(b, between, block)
        if b.has(f"blk.{block}.ffn_gate_inp.weight"):
            stream = ops.add(between, experts(b, normed, block, Routing(normed=False)))
        else:
            stream = ops.add(between, blocks.feed_forward(b, normed, block))
    blocks.head(b, stream)


def falcon_h1(b: Builder) -> None:
    """falcon-h1: attention and Mamba-2 side by side in every layer."""
    stream = blocks.embeddings(b)
    positions = blocks.positions(b)
    recurrent = states.state_inputs(b)
    inputs = blocks.attention_inputs(b)
    wanted = blocks.output_rows(b)
    last = len(b.shape.trunk) - 1
    for block in b.layers():
        query, keys, values = blocks.qkv(b, blocks.norm(b, stream, block), block)
        query, keys = blocks.rope(query, positions), blocks.rope(keys, positions)
        attended = blocks.attend(b, inputs, block, query, keys, values)
        result = states.mamba2(b, recurrent, block, blocks.norm(b, stream, block))
        stream = ops.add(ops.add(attended, result), stream)
        if block == last:
            stream = ops.get_rows(stream, wanted)
        stream = ops.add(blocks.feed_forward(b, blocks.norm(b, stream, block), block), stream)
    blocks.head(b, stream)


def granite(b: Builder) -> None:
    """granitehybrid: Mamba-2 or attention, then a dense part or experts with a shared one."""
    header, arch = b.header, b.shape.architecture
    scaled = bool(header.metadata.get(f"{arch}.residual_scale"))
    stream = blocks.embeddings(b, scaled=bool(header.metadata.get(f"{arch}.embedding_scale")))
    recurrent = states.state_inputs(b)
    inputs = blocks.attention_inputs(b)
    wanted = blocks.output_rows(b)
    rotary = header.metadata.get(f"{arch}.rope.scaling.finetuned", True)
    positions = blocks.positions(b) if rotary else None
    last = len(b.shape.trunk) - 1
    for block in b.layers():
        normed = blocks.norm(b, stream, block)
        if b.layer(block).recurrent:
            result = states.mamba2(b, recurrent, block, normed)
        else:
            query, keys, values = blocks.qkv(b, normed, block)
            if positions is not None:
                query, keys = blocks.rope(query, positions), blocks.rope(keys, positions)
            result = blocks.attend(b, inputs, block, query, keys, values)
        if block == last:
            result, stream = ops.get_rows(result, wanted), ops.get_rows(stream, wanted)
        between = ops.add(ops.elementwise("scale", result) if scaled else result, stream)
        result = _granite_ff(b, blocks.norm(b, between, block), block)
        stream = ops.add(ops.elementwise("scale", result) if scaled else result, between)
    blocks.head(b, stream)


def _granite_ff(b: Builder, source: Tensor, block: int) -> Tensor:
    if not b.has(f"blk.{block}.ffn_gate_inp.weight"):
        return blocks.feed_forward(b, source, block)
    routed = experts(b, source, block)
    return ops.add(routed, shared_expert(b, source, block)) if b.shape.shared_ff else routed


def nemotron(b: Builder) -> None:
    """nemotron_h and nemotron_h_moe: in each layer Mamba-2, attention without positions, or a feed-forward part."""
    stream = b.expand(blocks.embeddings(b))
    recurrent = states.state_inputs(b)
    inputs = blocks.attention_inputs(b)
    wanted = blocks.output_rows(b)
    for block in b.layers():
        result = _nemotron_layer(b, recurrent, inputs, blocks.norm(b, stream, block), block)
        stream = ops.add(result, stream)
    normed = blocks.norm(b, stream, -1)
    # An MTP head may ask for it (t_h_nextn).
    normed.is_output = True
    blocks.head(b, ops.get_rows(normed, wanted), normed=False)


def _nemotron_layer(b: Builder, recurrent: States, inputs: blocks.Attention, source: Tensor, block: int) -> Tensor:
    layer = b.layer(block)
    if layer.recurrent:
        return states.mamba2(b, recurrent, block, source)
    if layer.k_width:
        return blocks.attend(b, inputs, block, *blocks.qkv(b, source, block))
    if not b.has(f"blk.{block}.ffn_gate_inp.weight"):
        return blocks.feed_forward(b, source, block, gate="")
    narrow = source
    down = b.header.by_name.get(f"blk.{block}.ffn_latent_down.weight")
    if down:
        narrow = ops.mul_mat(b.matrix(block, "ffn_latent_down", *down.dims[:2]), source)
    count = b.header.integer(".expert_count")
    logits = ops.mul_mat(b.matrix(block, "ffn_gate_inp", source.extent[0], count), source)
    scaled = b.header.metadata.get(f"{b.shape.architecture}.expert_weights_scale", 0.0) not in {0.0, 1.0}
    normed = bool(b.header.metadata.get(f"{b.shape.architecture}.expert_weights_norm"))
    routed = experts(b, narrow, block, Routing(gating="sigmoid", normed=normed, scaled=scaled), logits=logits)
    if down:
        routed = ops.mul_mat(b.matrix(block, "ffn_latent_up", down.dims[1], down.dims[0]), routed)
    return ops.add(routed, shared_expert(b, source, block))
