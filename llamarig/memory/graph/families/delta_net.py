"""Gated DeltaNet with full attention in every n-th layer: qwen35, qwen35moe, qwen3next.

Source: src/models/qwen35.cpp, qwen35moe.cpp, qwen3next.cpp.
"""

from __future__ import annotations

from llamarig.memory.graph import blocks, ops, states
from llamarig.memory.graph.builder import Builder
from llamarig.memory.graph.chunks import is_fused
from llamarig.memory.graph.experts import experts, shared_expert
from llamarig.memory.graph.families.mtp import gated_attention
from llamarig.memory.graph.states import Sizes, States
from llamarig.memory.graph.tensors import Tensor


def build(b: Builder) -> None:
    """The graph of one pass."""
    older = b.shape.architecture == "qwen3next"
    stream = blocks.embeddings(b)
    recurrent = states.state_inputs(b)
    inputs = blocks.attention_inputs(b)
    positions = blocks.positions(b, 1 if older else 4)
    wanted = blocks.output_rows(b)
    size = states.sizes(b)
    for block in b.layers():
        before = stream
        normed = b.expand(blocks.norm(b, stream, block))
        if b.layer(block).recurrent:
            stream = linear(b, recurrent, normed, block, size)
        else:
            stream = gated_attention(b, inputs, normed, positions, block, gate_late=older)
        before = ops.add(stream, before)
        normed = blocks.norm(b, before, block)
        stream = ops.add(feed_forward(b, normed, block), before)
    normed = blocks.norm(b, stream, -1)
    # An MTP head may ask for it (t_h_nextn).
    normed.is_output = True
    blocks.head(b, ops.get_rows(normed, wanted), normed=False)


def feed_forward(b: Builder, source: Tensor, block: int) -> Tensor:
    """Experts and the shared one, or a dense part (``build_layer_ffn``)."""
    if not b.shape.experts_used:
        return blocks.feed_forward(b, source, block)
    routed = experts(b, source, block)
    return ops.add(routed, shared_expert(b, source, block)) if b.has(f"blk.{block}.ffn_up_shexp.weight") else routed


def linear(b: Builder, inputs: States, source: Tensor, block: int, size: Sizes) -> Tensor:
    """Gated DeltaNet (``build_layer_attn_linear``)."""
    slots = b.work.sequences
    tokens = b.tokens // slots
    head = size.inner // size.heads
    mixed = ops.mul_mat(b.matrix(block, "attn_qkv", b.shape.embedding, size.channels), source)
    mixed = ops.reshape(mixed, size.channels, tokens, slots)
    out_gate = ops.mul_mat(b.matrix(block, "attn_gate", b.shape.embedding, size.inner), source)
    beta, alpha = _rates(b, source, block, size)
    alpha = ops.add(alpha, b.weight(f"blk.{block}.ssm_dt.bias", size.heads, block=block))
    decay = ops.mul(ops.elementwise("unary", alpha), b.weight(f"blk.{block}.ssm_a", size.heads, block=block))
    decay = ops.reshape(decay, 1, size.heads, tokens, slots)
    cache = states.state_cache(b, block, b.shape.state_elements)
    joined = states.convolve(b, inputs, block, mixed, size)
    state = ops.reshape(states.read(b, inputs, cache), head, head, size.heads, slots)
    stream = states.short_convolution(joined, b.matrix(block, "ssm_conv1d", size.kernel, size.channels))
    stream = ops.elementwise("unary", stream)
    query, keys = (
        ops.elementwise("l2_norm", ops.view(stream, (size.state, size.groups, tokens, slots))) for _ in range(2)
    )
    values = ops.view(stream, (head, size.heads, tokens, slots))
    if b.shape.architecture == "qwen3next" and size.heads != size.groups:
        query, keys = (_repeated(part, size, tokens, slots) for part in (query, keys))
    if b.shape.architecture != "qwen3next" and size.heads != size.groups and not is_fused(b):
        query, keys = (ops.repeat(part, size.state, size.heads, tokens, slots) for part in (query, keys))
    output = states.delta_net(b, cache, query, keys, values, decay, beta, state)
    out_gate = ops.reshape(out_gate, head, size.heads, tokens, slots)
    result = ops.mul(blocks.norm(b, output, block), ops.elementwise("unary", out_gate))
    result = ops.reshape(result, size.inner, tokens, slots)
    result = ops.mul_mat(b.matrix(block, "ssm_out", size.inner, b.shape.embedding), result)
    return ops.reshape(result, b.shape.embedding, b.tokens)


def _rates(b: Builder, source: Tensor, block: int, size: Sizes) -> tuple[Tensor, Tensor]:
    """Beta after its activation, and alpha before its bias."""
    slots = b.work.sequences
    tokens = b.tokens // slots
    if b.shape.architecture != "qwen3next":
        beta = ops.mul_mat(b.matrix(block, "ssm_beta", b.shape.embedding, size.heads), source)
        beta = ops.elementwise("unary", ops.reshape(beta, 1, size.heads, tokens, slots))
        alpha = ops.mul_mat(b.matrix(block, "ssm_alpha", b.shape.embedding, size.heads), source)
        return beta, ops.reshape(alpha, size.heads, tokens, slots)
    each = size.heads // size.groups
    joint = ops.mul_mat(b.matrix(block, "ssm_ba", b.shape.embedding, 2 * size.heads), source)
    joint = ops.reshape(joint, 2 * each, size.groups, tokens, slots)
    half = (each, size.groups, tokens, slots)
    beta = ops.elementwise("unary", ops.cont(ops.view(joint, half)))
    alpha = ops.cont(ops.view(joint, half), size.heads, tokens, slots)
    return ops.reshape(beta, 1, size.heads, tokens, slots), alpha


def _repeated(part: Tensor, size: Sizes, tokens: int, slots: int) -> Tensor:
    """One key head for each of its value heads."""
    each = size.heads // size.groups
    part = ops.reshape(part, size.state, 1, size.groups, tokens * slots)
    part = ops.repeat(part, size.state, each, size.groups, tokens * slots)
    return ops.reshape(part, size.state, size.heads, tokens, slots)
