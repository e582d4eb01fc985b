"""The tensors of each architecture; source: its ``load_arch_tensors`` in src/models/ (build 10454)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tests.support.models.weights import Weights

Layout = Callable[[Weights], None]


@dataclass(frozen=True)
class Style:
    """What plain blocks have beyond the matrices that all have."""

    norms: tuple[str, ...] = ("attn_norm", "ffn_norm")
    bias: bool = False
    """Biases of Q, K and V."""
    qk_norm: bool = False
    wide_qk_norm: bool = False
    """The norms of Q and K are over all heads at once."""
    fused_qkv: bool = False
    fused_gate: bool = False
    """Gate and up in one matrix."""
    gated: bool = False
    """Q carries an output gate of its own width."""
    attention_gate: bool = False
    """A matrix of its own gates the attention's output, element by element."""
    head_gate: bool = False
    """It gates whole heads."""
    sinks: bool = False
    """Sliding layers have attention sinks."""
    shared_gate: bool = False
    """The shared expert has a gate."""
    router_bias: str = ""
    norm_bias: bool = False
    out_bias: bool = False
    """Bias of the attention's output; ``head_bias`` of the logits."""
    head_bias: bool = False
    ffn_bias: bool = False
    dense_gate: bool = True


def attention(weights: Weights, layer: int, style: Style, suffix: str = "") -> None:
    """Q, K, V and the output matrix; ``suffix`` is ``_swa`` where sliding layers have heads of their own."""
    model = weights.model
    head = model.head(suffix)
    value = model.integer(f"attention.value_length{suffix}", head)
    heads = model.per_layer("attention.head_count")[layer]
    shared = model.per_layer("attention.head_count_kv", heads)[layer]
    rows = {"q": heads * head * (2 if style.gated else 1), "k": shared * head, "v": shared * value}
    if style.fused_qkv:
        rows = {"qkv": sum(rows.values())}
    for name, width in rows.items():
        weights.matrix(layer, f"attn_{name}", model.embedding, width)
        if style.bias:
            weights.vector(layer, f"attn_{name}.bias", width)
    weights.matrix(layer, "attn_output", heads * value, model.embedding)
    if style.out_bias:
        weights.vector(layer, "attn_output.bias", model.embedding)
    if style.attention_gate or style.head_gate:
        weights.matrix(layer, "attn_gate", model.embedding, heads if style.head_gate else heads * value)
    if style.sinks and model.per_layer("attention.sliding_window_pattern")[layer]:
        weights.vector(layer, "attn_sinks.weight", heads)
    if style.qk_norm or style.wide_qk_norm:
        weights.vector(layer, "attn_q_norm.weight", head * heads if style.wide_qk_norm else head)
        weights.vector(layer, "attn_k_norm.weight", head * shared if style.wide_qk_norm else head)


def feed_forward(weights: Weights, layer: int, *, fused: bool = False, gate: bool = True) -> None:
    """Gate, up and down; ``fused``: gate and up in one matrix."""
    model = weights.model
    ff = model.per_layer("feed_forward_length")[layer]
    if gate and not fused:
        weights.matrix(layer, "ffn_gate", model.embedding, ff)
    weights.matrix(layer, "ffn_up", model.embedding, ff * (2 if fused else 1))
    weights.matrix(layer, "ffn_down", ff, model.embedding)


def experts(
    weights: Weights, layer: int, *, names: tuple[str, ...] = ("gate", "up"), kind: str = "", bias: str = ""
) -> None:
    """The router, the experts and, where the keys name its width, a shared one.

    ``names`` are the matrices before the product, ``gate_up`` being two in one; ``bias`` names the router's.
    """
    model = weights.model
    count = model.integer("expert_count")
    ff = model.integer("expert_feed_forward_length", model.per_layer("feed_forward_length")[layer])
    weights.vector(layer, "ffn_gate_inp.weight", model.embedding, count)
    if bias:
        weights.vector(layer, bias, count)
    for name in names:
        rows = 2 * ff if name == "gate_up" else ff
        weights.matrix(layer, f"ffn_{name}_exps", model.embedding, rows, count, kind=kind)
    weights.matrix(layer, "ffn_down_exps", ff, model.embedding, count, kind=kind)
    shared = model.integer("expert_shared_feed_forward_length", ff * model.integer("expert_shared_count", 0))
    if shared:
        for name in names:
            weights.matrix(layer, f"ffn_{name}_shexp", model.embedding, shared)
        weights.matrix(layer, "ffn_down_shexp", shared, model.embedding)


def plain(weights: Weights, style: Style) -> None:
    """Attention, then a feed-forward part or, past the leading dense layers, experts, in every layer."""
    model = weights.model
    dense = model.integer("leading_dense_block_count", 0) if "expert_count" in model.keys else model.layers
    for layer in range(model.layers):
        weights.norms(layer, *style.norms)
        if style.norm_bias:
            for name in style.norms:
                weights.vector(layer, f"{name}.bias", model.embedding)
        attention(weights, layer, style)
        if layer < dense:
            feed_forward(weights, layer, fused=style.fused_gate, gate=style.dense_gate)
            if style.ffn_bias:
                weights.vector(layer, "ffn_up.bias", model.per_layer("feed_forward_length")[layer])
                weights.vector(layer, "ffn_down.bias", model.embedding)
        else:
            experts(weights, layer, bias=style.router_bias)
            if style.shared_gate:
                weights.vector(layer, "ffn_gate_inp_shexp.weight", model.embedding)
        if layer >= model.trunk:
            prediction(weights, layer)
    if style.norm_bias:
        weights.composed.tensor("output_norm.bias", "F32", model.embedding)
    if style.head_bias:
        weights.composed.tensor("output.bias", "F32", model.vocabulary)


def prediction(weights: Weights, layer: int) -> None:
    """What makes a block an MTP head."""
    weights.matrix(layer, "nextn.eh_proj", 2 * weights.model.embedding, weights.model.embedding)
    weights.norms(layer, "nextn.enorm", "nextn.hnorm", "nextn.shared_head_norm")


def delta_net(weights: Weights, *, joint_rates: bool = False) -> None:
    """qwen35, qwen35moe, qwen3next: Gated DeltaNet, attention with a gate in every n-th layer, an MTP head."""
    model = weights.model
    inner, state = model.integer("ssm.inner_size"), model.integer("ssm.state_size")
    heads, width = model.integer("ssm.time_step_rank"), inner + 2 * state * model.integer("ssm.group_count")
    interval = model.integer("full_attention_interval", 4)
    for layer in range(model.layers):
        weights.norms(layer, "attn_norm", "post_attention_norm")
        if layer >= model.trunk or (layer + 1) % interval == 0:
            attention(weights, layer, Style(qk_norm=True, gated=True))
        else:
            weights.matrix(layer, "attn_qkv", model.embedding, width)
            weights.matrix(layer, "attn_gate", model.embedding, inner)
            weights.vector(layer, "ssm_conv1d.weight", model.integer("ssm.conv_kernel"), width)
            weights.vector(layer, "ssm_dt.bias", heads)
            weights.vector(layer, "ssm_a", heads)
            for name, rows in (("ssm_ba", 2 * heads),) if joint_rates else (("ssm_beta", heads), ("ssm_alpha", heads)):
                weights.matrix(layer, name, model.embedding, rows)
            weights.vector(layer, "ssm_norm.weight", state)
            weights.matrix(layer, "ssm_out", inner, model.embedding)
        if "expert_count" in model.keys:
            experts(weights, layer)
            weights.vector(layer, "ffn_gate_inp_shexp.weight", model.embedding)
        else:
            feed_forward(weights, layer)
        if layer >= model.trunk:
            prediction(weights, layer)


def gpt_oss(weights: Weights) -> None:
    """gpt-oss: attention sinks, biases everywhere, experts in MXFP4 as published, all else in Q8_0."""
    model = weights.model
    head, count, ff = model.head(), model.integer("expert_count"), model.integer("expert_feed_forward_length")
    heads, shared = model.integer("attention.head_count"), model.integer("attention.head_count_kv")
    for layer in range(model.layers):
        weights.norms(layer, "attn_norm", "post_attention_norm")
        for name, rows in (("q", heads * head), ("k", shared * head), ("v", shared * head)):
            weights.matrix(layer, f"attn_{name}", model.embedding, rows, kind="Q8_0")
            weights.vector(layer, f"attn_{name}.bias", rows)
        weights.matrix(layer, "attn_output", heads * head, model.embedding, kind="Q8_0")
        weights.vector(layer, "attn_output.bias", model.embedding)
        weights.vector(layer, "attn_sinks.weight", heads)
        experts(weights, layer, kind="MXFP4", bias="ffn_gate_inp.bias")
        for name, rows in (("gate", ff), ("up", ff), ("down", model.embedding)):
            weights.vector(layer, f"ffn_{name}_exps.bias", rows, count)


SANDWICH = ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm")
LLAMA: Layout = partial(plain, style=Style())
QWEN2: Layout = partial(plain, style=Style(bias=True))
QWEN2MOE: Layout = partial(plain, style=Style(bias=True, shared_gate=True))
QWEN3: Layout = partial(plain, style=Style(qk_norm=True))
GEMMA2: Layout = partial(plain, style=Style(norms=SANDWICH))
GEMMA3: Layout = partial(plain, style=Style(norms=SANDWICH, qk_norm=True))
COHERE2: Layout = partial(plain, style=Style(norms=("attn_norm",)))
PHI3: Layout = partial(plain, style=Style(fused_qkv=True, fused_gate=True))
GLM4: Layout = partial(plain, style=Style(norms=SANDWICH, bias=True, fused_gate=True))
GLM4MOE: Layout = partial(
    plain,
    style=Style(norms=("attn_norm", "post_attention_norm"), bias=True, qk_norm=True, router_bias="exp_probs_b.bias"),
)
OLMO2: Layout = partial(plain, style=Style(norms=("post_attention_norm", "post_ffw_norm"), wide_qk_norm=True))
EXAONE4: Layout = partial(plain, style=Style(norms=("post_attention_norm", "post_ffw_norm"), qk_norm=True))
SEED: Layout = partial(plain, style=Style(norms=("attn_norm", "post_attention_norm"), bias=True))
BAILINGMOE2: Layout = partial(plain, style=Style(qk_norm=True, fused_qkv=True, router_bias="exp_probs_b.bias"))
MINIMAX_M2: Layout = partial(plain, style=Style(wide_qk_norm=True, router_bias="exp_probs_b.bias"))
OLMOE: Layout = partial(plain, style=Style(wide_qk_norm=True))
STARCODER2: Layout = partial(
    plain, style=Style(bias=True, norm_bias=True, out_bias=True, ffn_bias=True, dense_gate=False)
)
NEMOTRON: Layout = partial(plain, style=Style(norm_bias=True, dense_gate=False))
ARCEE: Layout = partial(plain, style=Style(dense_gate=False))
PHIMOE: Layout = partial(plain, style=Style(bias=True, norm_bias=True, out_bias=True, head_bias=True))
AFMOE: Layout = partial(
    plain, style=Style(norms=SANDWICH, qk_norm=True, attention_gate=True, router_bias="exp_probs_b.bias")
)
APERTUS: Layout = partial(plain, style=Style(qk_norm=True, dense_gate=False))
MIMO2: Layout = partial(plain, style=Style(sinks=True, router_bias="exp_probs_b.bias"))
STEP35: Layout = partial(plain, style=Style(qk_norm=True, head_gate=True, router_bias="exp_probs_b.bias"))
QWEN35: Layout = delta_net
QWEN3NEXT: Layout = partial(delta_net, joint_rates=True)
