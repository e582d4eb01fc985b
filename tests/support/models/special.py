"""The tensors of architectures that are not plain; source: their ``load_arch_tensors`` in src/models/ (build 10454)."""

from __future__ import annotations

from tests.support.models.layouts import SANDWICH, Style, attention, experts, feed_forward
from tests.support.models.weights import Weights


def llama4(weights: Weights) -> None:
    """Experts with a shared one as wide in every n-th layer."""
    model = weights.model
    for layer in range(model.layers):
        weights.norms(layer, "attn_norm", "ffn_norm")
        attention(weights, layer, Style())
        if (layer + 1) % model.integer("interleave_moe_layer_step"):
            feed_forward(weights, layer)
        else:
            experts(weights, layer)


def deepseek2(weights: Weights) -> None:
    """Multi-head latent attention: K and V come from one low-rank row per token."""
    model = weights.model
    heads, rank = model.integer("attention.head_count"), model.integer("attention.kv_lora_rank")
    rope, key = model.integer("rope.dimension_count"), model.integer("attention.key_length_mla")
    value, low = model.integer("attention.value_length_mla"), model.integer("attention.q_lora_rank", 0)
    for layer in range(model.layers):
        weights.norms(layer, "attn_norm", "ffn_norm")
        if low:
            weights.vector(layer, "attn_q_a_norm.weight", low)
            weights.matrix(layer, "attn_q_a", model.embedding, low)
            weights.matrix(layer, "attn_q_b", low, heads * key)
        else:
            weights.matrix(layer, "attn_q", model.embedding, heads * key)
        weights.vector(layer, "attn_kv_a_norm.weight", rank)
        weights.matrix(layer, "attn_kv_a_mqa", model.embedding, rank + rope)
        weights.matrix(layer, "attn_k_b", key - rope, rank, heads)
        weights.matrix(layer, "attn_v_b", rank, value, heads)
        weights.matrix(layer, "attn_output", heads * value, model.embedding)
        if layer < model.integer("leading_dense_block_count"):
            feed_forward(weights, layer)
        else:
            experts(weights, layer, bias="exp_probs_b.bias" if low else "")


def gemma4(weights: Weights) -> None:
    """Sliding and full layers with heads of their own, later layers without K and V, per-layer inputs, experts."""
    model = weights.model
    slides = model.keys["attention.sliding_window_pattern"]
    assert isinstance(slides, list)
    per_layer = model.integer("embedding_length_per_layer_input")
    own = model.layers - model.integer("attention.shared_kv_layers", 0)
    _per_layer_inputs(weights, per_layer)
    for layer in range(model.layers):
        weights.norms(layer, *SANDWICH)
        head = model.head("_swa" if slides[layer] else "")
        heads, shared = (model.per_layer(f"attention.head_count{kind}")[layer] for kind in ("", "_kv"))
        weights.matrix(layer, "attn_q", model.embedding, heads * head)
        weights.matrix(layer, "attn_output", heads * head, model.embedding)
        weights.vector(layer, "attn_q_norm.weight", head)
        if layer < own:
            weights.matrix(layer, "attn_k", model.embedding, shared * head)
            weights.vector(layer, "attn_k_norm.weight", head)
            if slides[layer] or per_layer:
                weights.matrix(layer, "attn_v", model.embedding, shared * head)
        weights.vector(layer, "layer_output_scale.weight", 1)
        feed_forward(weights, layer)
        if "expert_count" in model.keys:
            weights.norms(layer, "pre_ffw_norm_2", "post_ffw_norm_1", "post_ffw_norm_2")
            weights.vector(layer, "ffn_gate_inp.scale", model.embedding)
            experts(weights, layer, names=("gate_up",))
        if per_layer:
            weights.matrix(layer, "inp_gate", model.embedding, per_layer)
            weights.matrix(layer, "proj", per_layer, model.embedding)
            weights.norms(layer, "post_norm")
    weights.composed.tensor("rope_freqs.weight", "F32", model.head() // 2)


def _per_layer_inputs(weights: Weights, width: int) -> None:
    model = weights.model
    if width:
        weights.tensor("per_layer_token_embd.weight", "Q6_K", width * model.layers, model.vocabulary)
        weights.tensor("per_layer_model_proj.weight", "F16", model.embedding, width * model.layers)
        weights.composed.tensor("per_layer_proj_norm.weight", "F32", width)


def gemma3n(weights: Weights) -> None:
    """Gemma's sandwich of norms, four parallel streams (AltUp), a low-rank side path (LAuReL), per-layer inputs."""
    model, streams, rank, width = weights.model, 4, 64, 256
    _per_layer_inputs(weights, width)
    for name in ("altup_proj", "altup_unembd_proj"):
        weights.tensor(f"{name}.weight", "F16", model.embedding, model.embedding, streams - 1)
    for layer in range(model.layers):
        weights.norms(layer, *SANDWICH, "post_norm", "altup_correct_scale", "altup_router_norm", "laurel_post_norm")
        attention(weights, layer, Style(qk_norm=True))
        feed_forward(weights, layer)
        weights.matrix(layer, "inp_gate", model.embedding, width)
        weights.matrix(layer, "proj", width, model.embedding)
        weights.vector(layer, "altup_correct_coef.weight", streams, streams)
        weights.vector(layer, "altup_predict_coef.weight", streams, streams * streams)
        weights.vector(layer, "altup_router.weight", model.embedding, streams)
        weights.matrix(layer, "laurel_l", model.embedding, rank)
        weights.matrix(layer, "laurel_r", rank, model.embedding)


def lfm2(weights: Weights) -> None:
    """Short convolutions, attention where a layer has KV heads; experts past the leading dense layers."""
    model = weights.model
    kv_heads = model.per_layer("attention.head_count_kv")
    dense = model.integer("leading_dense_block_count", 0) if "expert_count" in model.keys else model.layers
    for layer in range(model.layers):
        weights.norms(layer, "attn_norm", "ffn_norm")
        if layer < dense:
            feed_forward(weights, layer)
        else:
            experts(weights, layer, bias="exp_probs_b.bias")
        if kv_heads[layer]:
            attention(weights, layer, Style(qk_norm=True))
        else:
            weights.vector(layer, "shortconv.conv.weight", model.integer("shortconv.l_cache"), model.embedding)
            weights.matrix(layer, "shortconv.in_proj", model.embedding, 3 * model.embedding)
            weights.matrix(layer, "shortconv.out_proj", model.embedding, model.embedding)


def mamba_layer(weights: Weights, layer: int, *, normed: bool = False) -> None:
    """Mamba-1; ``normed``: dt, B and C are normed (Jamba)."""
    model = weights.model
    inner, state = model.integer("ssm.inner_size"), model.integer("ssm.state_size")
    rank = model.integer("ssm.time_step_rank")
    weights.matrix(layer, "ssm_in", model.embedding, 2 * inner)
    weights.vector(layer, "ssm_conv1d.weight", model.integer("ssm.conv_kernel"), inner)
    weights.vector(layer, "ssm_conv1d.bias", inner)
    weights.matrix(layer, "ssm_x", inner, rank + 2 * state)
    weights.matrix(layer, "ssm_dt", rank, inner)
    weights.vector(layer, "ssm_dt.bias", inner)
    weights.vector(layer, "ssm_a", state, inner)
    weights.vector(layer, "ssm_d", inner)
    weights.matrix(layer, "ssm_out", inner, model.embedding)
    if normed:
        for name, width in (("dt", rank), ("b", state), ("c", state)):
            weights.vector(layer, f"ssm_{name}_norm.weight", width)


def mamba2_layer(weights: Weights, layer: int, *, normed: bool = True) -> None:
    """Mamba-2, with a norm before its output unless ``normed`` is False."""
    model = weights.model
    inner, heads = model.integer("ssm.inner_size"), model.integer("ssm.time_step_rank")
    groups = model.integer("ssm.group_count")
    width = inner + 2 * groups * model.integer("ssm.state_size")
    weights.matrix(layer, "ssm_in", model.embedding, inner + width + heads)
    weights.vector(layer, "ssm_conv1d.weight", model.integer("ssm.conv_kernel"), width)
    weights.vector(layer, "ssm_conv1d.bias", width)
    weights.vector(layer, "ssm_dt.bias", heads)
    weights.vector(layer, "ssm_a", 1, heads)
    weights.vector(layer, "ssm_d", 1, heads)
    if normed:
        weights.vector(layer, "ssm_norm.weight", inner // groups, groups)
    weights.matrix(layer, "ssm_out", inner, model.embedding)


def mamba(weights: Weights) -> None:
    for layer in range(weights.model.layers):
        weights.norms(layer, "attn_norm")
        mamba_layer(weights, layer)


def mamba2(weights: Weights) -> None:
    for layer in range(weights.model.layers):
        weights.norms(layer, "attn_norm")
        mamba2_layer(weights, layer)


def jamba(weights: Weights) -> None:
    """Mamba-1, attention where a layer has KV heads; experts in every second layer."""
    model = weights.model
    kv_heads = model.per_layer("attention.head_count_kv")
    for layer in range(model.layers):
        weights.norms(layer, "attn_norm", "ffn_norm")
        if kv_heads[layer]:
            attention(weights, layer, Style())
        else:
            mamba_layer(weights, layer, normed=True)
        if layer % 2:
            experts(weights, layer)
        else:
            feed_forward(weights, layer)


def granite_hybrid(weights: Weights) -> None:
    """Mamba-2, attention where a layer has KV heads; then experts, or a dense part."""
    model = weights.model
    kv_heads = model.per_layer("attention.head_count_kv")
    for layer in range(model.layers):
        weights.norms(layer, "attn_norm", "ffn_norm")
        if kv_heads[layer]:
            attention(weights, layer, Style())
        else:
            mamba2_layer(weights, layer)
        if "expert_count" in model.keys:
            experts(weights, layer)
        else:
            feed_forward(weights, layer)


def nemotron_h(weights: Weights) -> None:
    """One thing a layer: Mamba-2, attention where it has KV heads, or a feed-forward part where it has a width."""
    model = weights.model
    kv_heads, widths = model.per_layer("attention.head_count_kv"), model.per_layer("feed_forward_length")
    for layer in range(model.layers):
        weights.norms(layer, "attn_norm")
        if kv_heads[layer]:
            attention(weights, layer, Style())
        elif not widths[layer]:
            mamba2_layer(weights, layer)
        elif "expert_count" in model.keys:
            experts(weights, layer, names=("up",), bias="exp_probs_b.bias")
        else:
            feed_forward(weights, layer, gate=False)


def falcon_h1(weights: Weights) -> None:
    """Mamba-2 and attention beside each other in every layer."""
    for layer in range(weights.model.layers):
        weights.norms(layer, "attn_norm")
        weights.vector(layer, "ffn_norm", weights.model.embedding)
        mamba2_layer(weights, layer, normed=False)
        attention(weights, layer, Style())
        feed_forward(weights, layer)
