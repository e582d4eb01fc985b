"""The pass of an MTP head: one attention layer behind the target's last row and the token's embedding.

Source: ``graph_mtp`` in src/models/qwen35.cpp, qwen35moe.cpp and qwen3next.cpp.
"""

from __future__ import annotations

from llamarig.memory.graph import blocks, experts, ops
from llamarig.memory.graph.builder import Builder
from llamarig.memory.graph.sampling import sample
from llamarig.memory.graph.tensors import Tensor


def build(b: Builder) -> None:
    """The graph of one pass; the head's layer is the one after the trunk."""
    early = b.shape.architecture == "qwen3next"
    block = len(b.shape.trunk)
    width = b.shape.embedding
    tokens = b.input("i32", b.tokens)
    table = b.weight(_own(b, block, "embed_tokens", "token_embd.weight"), width, b.shape.vocabulary)
    embedded = ops.get_rows(table, tokens)
    hidden = b.input("f32", width, b.tokens)
    positions = blocks.positions(b, 1 if early else 4)
    wanted = blocks.output_rows(b)
    inputs = blocks.attention_inputs(b)
    hidden = blocks.norm(b, hidden, block)
    both = ops.concat(blocks.norm(b, embedded, block), hidden)
    stream = ops.mul_mat(b.matrix(block, "nextn.eh_proj", 2 * width, width), both)
    before = stream
    stream = gated_attention(b, inputs, blocks.norm(b, stream, block), positions, block, gate_late=early)
    if early:
        stream, before = ops.get_rows(stream, wanted), ops.get_rows(before, wanted)
    between = ops.add(stream, before)
    normed = blocks.norm(b, between, block)
    if b.has(f"blk.{block}.ffn_gate_inp.weight", default=b.shape.expert_ff > 0):
        found = experts.experts(b, normed, block)
        if b.has(f"blk.{block}.ffn_up_shexp.weight", default=b.shape.shared_ff > 0):
            found = ops.add(found, experts.shared_expert(b, normed, block))
    else:
        found = blocks.feed_forward(b, normed, block)
    stream = blocks.norm(b, ops.add(found, between), -1)
    stream.is_output = True
    if not early:
        stream = ops.get_rows(stream, wanted)
    output = b.weight(_own(b, block, "shared_head_head", "output.weight"), width, b.shape.vocabulary)
    logits = ops.mul_mat(output, stream)
    logits.is_output = True
    b.expand(logits)
    sample(b, logits)


def _own(b: Builder, block: int, name: str, other: str) -> str:
    """The head's own tensor, or the target's where it has none."""
    own = f"blk.{block}.nextn.{name}.weight"
    return own if b.has(own) else other


def gated_attention(  # noqa: PLR0913 - as many as a layer needs
    b: Builder, inputs: blocks.Attention, source: Tensor, positions: Tensor, block: int, *, gate_late: bool
) -> Tensor:
    """Attention whose query matrix yields an output gate besides.

    The gate is copied out before the rotary positions, or after attention (``gate_late``). Source:
    ``build_layer_attn`` in src/models/qwen35.cpp and qwen3next.cpp.
    """
    layer = b.layer(block)
    head, tokens = layer.k_head, b.tokens
    joint = blocks.project(b, source, block, "attn_q", 2 * head * layer.heads)
    half = (head, layer.heads, tokens, 1)
    query = blocks.norm(b, ops.view(joint, half), block)

    def gate() -> Tensor:
        return ops.cont(ops.view(joint, half), head * layer.heads, tokens)

    early = None if gate_late else gate()
    keys = blocks.project(b, source, block, "attn_k", head * layer.kv_heads)
    keys = blocks.norm(b, ops.reshape(keys, head, layer.kv_heads, tokens), block)
    values = blocks.project(b, source, block, "attn_v", layer.v_head * layer.kv_heads)
    values = ops.reshape(values, layer.v_head, layer.kv_heads, tokens)
    query, keys = blocks.rope(query, positions), blocks.rope(keys, positions)
    found = blocks.attend(b, inputs, block, query, keys, values, output="")
    found = ops.mul(found, ops.elementwise("unary", early or gate()))
    return blocks.project(b, found, block, "attn_output", b.shape.embedding)
