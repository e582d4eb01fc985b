"""Headers of models that people serve, composed from their published dimensions, and one small one; no weights."""

from __future__ import annotations

import io
from collections.abc import Sequence

from llamarig.gguf import Header, read_header
from tests.support import gguf_bytes as raw

MIB = 1 << 20
REFERENCE_WEIGHTS = 17_125_207_136
"""Bytes of the reference stack's model file; its tensors are 16,321.38 MiB (reference-stacks, stack 1)."""
REFERENCE_TENSORS_MIB = 16321.38
REFERENCE_EMBEDDING_MIB = 994.63
REFERENCE_PROJECTOR = 927_607_488
"""Bytes of its F16 projector."""


def qwen35_27b(
    *, vocabulary: Sequence[str] = (), merges: Sequence[str] = (), mtp: int = 1, blocks: int = 64
) -> raw.Composed:
    """The 27B hybrid: 48 Gated DeltaNet and 16 attention layers, one MTP layer, 4 KV heads of 256.

    Bulk matrices are NVFP4, embedding and output as in the reference recipe; one I8 tensor fills
    the sum up to the published size, since the recipe's per-tensor choice is not published.
    """
    composed = raw.Composed()
    add = composed.add
    add("general.architecture", raw.STRING, "qwen35").add("general.name", raw.STRING, "Composed 27B")
    for key, value in {
        "block_count": blocks + mtp,
        "context_length": 262_144,
        "embedding_length": 5120,
        "feed_forward_length": 17_408,
        "attention.head_count": 24,
        "attention.head_count_kv": 4,
        "attention.key_length": 256,
        "attention.value_length": 256,
        "rope.dimension_count": 64,
        "ssm.conv_kernel": 4,
        "ssm.inner_size": 6144,
        "ssm.state_size": 128,
        "ssm.time_step_rank": 48,
        "ssm.group_count": 16,
        "full_attention_interval": 4,
    }.items():
        add(f"qwen35.{key}", raw.U32, value)
    if mtp:
        add("qwen35.nextn_predict_layers", raw.U32, mtp)
    tokens = vocabulary or ["x"] * 248_320
    composed.pairs.append(raw.array("tokenizer.ggml.tokens", raw.STRING, tokens))
    composed.pairs.append(raw.array("tokenizer.ggml.token_type", raw.I32, [1] * len(tokens)))
    if merges:
        composed.pairs.append(raw.array("tokenizer.ggml.merges", raw.STRING, merges))
    composed.tensor("token_embd.weight", "Q6_K", 5120, 248_320)
    composed.tensor("output.weight", "Q8_0", 5120, 248_320)
    composed.tensor("output_norm.weight", "F32", 5120)
    for block in range(blocks + mtp):
        _block(composed, block, attention=block >= blocks or block % 4 == 3, mtp=block >= blocks)
    wanted = round(REFERENCE_TENSORS_MIB * MIB)
    used = sum(composed.size_of(kind, dims) for _, kind, dims in composed.tensors)
    if used < wanted:
        composed.tensor("blk.0.filler.weight", "I8", wanted - used)
    return composed


def _block(composed: raw.Composed, block: int, *, attention: bool, mtp: bool) -> None:
    def matrix(name: str, rows: int, columns: int) -> None:
        composed.tensor(f"blk.{block}.{name}.weight", "NVFP4", columns, rows)

    def vector(name: str, width: int) -> None:
        composed.tensor(f"blk.{block}.{name}", "F32", width)

    vector("attn_norm.weight", 5120)
    vector("post_attention_norm.weight", 5120)
    if attention:
        matrix("attn_q", 12_288, 5120)
        matrix("attn_k", 1024, 5120)
        matrix("attn_v", 1024, 5120)
        matrix("attn_output", 5120, 6144)
    else:
        matrix("attn_qkv", 10_240, 5120)
        matrix("attn_gate", 6144, 5120)
        matrix("ssm_out", 5120, 6144)
        vector("ssm_a", 48)
        vector("ssm_dt.bias", 48)
        composed.tensor(f"blk.{block}.ssm_conv1d.weight", "F32", 4, 10_240)
    matrix("ffn_gate", 17_408, 5120)
    matrix("ffn_up", 17_408, 5120)
    matrix("ffn_down", 5120, 17_408)
    if mtp:
        matrix("nextn.eh_proj", 5120, 10_240)


def keys(architecture: str, values: dict[str, int | list[int] | bool]) -> raw.Composed:
    """A header with keys alone, for models whose weights do not matter in a test."""
    composed = raw.Composed()
    composed.add("general.architecture", raw.STRING, architecture)
    for key, value in values.items():
        if isinstance(value, list):
            composed.pairs.append(raw.array(f"{architecture}.{key}", raw.I32, value))
        else:
            composed.add(f"{architecture}.{key}", raw.U32, value)
    return composed


def small_llama(trained: int, *, name: str = "", output: bool = True) -> Header:
    """A header of four layers and a window of ``trained`` tokens; without ``output`` its embedding is tied."""
    dimensions = {"block_count": 4, "embedding_length": 512, "feed_forward_length": 1024, "attention.head_count": 8}
    composed = keys("llama", {**dimensions, "context_length": trained})
    if name:
        composed.add("general.name", raw.STRING, name)
    composed.tensor("token_embd.weight", "F16", 512, 1000)
    return header_of(composed.tensor("output.weight", "F16", 512, 1000) if output else composed)


def header_of(composed: raw.Composed) -> Header:
    """The header as the reader sees it; no file is written."""
    head = composed.header()
    return read_header(io.BytesIO(head), file_size=len(head) + composed.data_size())
