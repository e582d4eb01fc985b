"""Small models of each architecture with a recurrent state."""

from __future__ import annotations

from tests.support.models import layouts, special
from tests.support.models.model import Keys, Model, blocks, experts, heads


def _ssm(inner: int, state: int, rank: int, groups: int = 0) -> Keys:
    """A state-space layer; ``groups`` 0: Mamba-1, where ``rank`` is that of dt, else the number of heads."""
    keys: Keys = {
        "ssm.conv_kernel": 4,
        "ssm.inner_size": inner,
        "ssm.state_size": state,
        "ssm.time_step_rank": rank,
    }
    return keys | ({"ssm.group_count": groups} if groups else {})


def _at(layers: int, attention: list[int], kv_heads: int) -> Keys:
    """KV heads where there is attention, 0 elsewhere."""
    return {"attention.head_count_kv": [kv_heads if layer in attention else 0 for layer in range(layers)]}


_NANO_9B = "M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-M-M-"
_NANO_30B = "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME"


def _pattern(letters: str, kv_heads: int, ff: int) -> Keys:
    """Nemotron's own notation: M a state, * attention, - and E a feed-forward part."""
    return {
        "attention.head_count_kv": [kv_heads if letter == "*" else 0 for letter in letters],
        "feed_forward_length": [ff if letter in "-E" else 0 for letter in letters],
    }


RECURRENT = (
    Model(
        "mamba-130m",
        "mamba",
        50_280,
        special.mamba,
        {**blocks(24, 768, 0, (0, 0), 2048), **_ssm(1536, 16, 48)},
        "state-spaces/mamba-130m-hf",
        tied=True,
    ),
    Model(
        "mamba2-370m",
        "mamba2",
        50_288,
        special.mamba2,
        {**blocks(48, 1024, 0, (0, 0), 1_048_576), **_ssm(2048, 128, 32, 1)},
        "state-spaces/mamba2-370m",
        tied=True,
    ),
    Model(
        "qwen35-0.8b",
        "qwen35",
        248_320,
        layouts.QWEN35,
        {**blocks(24, 1024, 3584, (8, 2), 262_144), **heads(256), **_ssm(2048, 128, 16, 16)}
        | {"rope.dimension_count": 64, "rope.dimension_sections": [11, 11, 10, 0], "full_attention_interval": 4},
        "Qwen/Qwen3.5-0.8B",
        tied=True,
    ),
    Model(
        "qwen35-0.8b-mtp",
        "qwen35",
        248_320,
        layouts.QWEN35,
        {**blocks(25, 1024, 3584, (8, 2), 262_144), **heads(256), **_ssm(2048, 128, 16, 16)}
        | {"rope.dimension_count": 64, "rope.dimension_sections": [11, 11, 10, 0], "full_attention_interval": 4}
        | {"nextn_predict_layers": 1},
        "Qwen/Qwen3.5-0.8B",
        tied=True,
    ),
    Model(
        "lfm2-1.2b",
        "lfm2",
        65_536,
        special.lfm2,
        {**blocks(16, 2048, 8192, (32, 8), 128_000), "shortconv.l_cache": 3, **_at(16, [2, 5, 8, 10, 12, 14], 8)},
        "LiquidAI/LFM2-1.2B",
        tied=True,
    ),
    Model(
        "lfm2-8b-a1b",
        "lfm2moe",
        65_536,
        special.lfm2,
        {**blocks(24, 2048, 7168, (32, 8), 128_000), **experts(32, 4, 1792), "shortconv.l_cache": 3}
        | {**_at(24, [2, 6, 10, 14, 18, 21], 8), "leading_dense_block_count": 2, "expert_gating_func": 2},
        "LiquidAI/LFM2-8B-A1B",
        tied=True,
    ),
    Model(
        "granite-4.0-h-tiny",
        "granitehybrid",
        100_352,
        special.granite_hybrid,
        {**blocks(40, 1536, 512, (12, 4), 131_072), **experts(64, 6, 512, 1024), **_ssm(3072, 128, 48, 1)}
        | _at(40, [5, 15, 25, 35], 4),
        "ibm-granite/granite-4.0-h-tiny",
        tied=True,
    ),
    Model(
        "nemotron-nano-9b-v2",
        "nemotron_h",
        131_072,
        special.nemotron_h,
        {**blocks(56, 4480, 0, (40, 8), 131_072), **heads(128), **_ssm(10_240, 128, 128, 8)}
        | _pattern(_NANO_9B, 8, 15_680),
        "nvidia/NVIDIA-Nemotron-Nano-9B-v2",
    ),
    Model(
        "nemotron-3-nano-30b-a3b",
        "nemotron_h_moe",
        131_072,
        special.nemotron_h,
        {**blocks(52, 2688, 0, (32, 2), 262_144), **heads(128), **_ssm(4096, 128, 64, 8)}
        | experts(128, 6, 1856, 3712)
        | {"expert_shared_count": 1, "expert_weights_norm": True, "expert_weights_scale": 2.5}
        | _pattern(_NANO_30B, 2, 1856),
        "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
    ),
    Model(
        "falcon-h1-0.5b",
        "falcon-h1",
        32_784,
        special.falcon_h1,
        {**blocks(36, 1024, 2048, (8, 2), 16_384), **heads(64), **_ssm(1536, 128, 24, 1)},
        "tiiuae/Falcon-H1-0.5B-Instruct",
    ),
    Model(
        "jamba-v0.1",
        "jamba",
        65_536,
        special.jamba,
        {**blocks(32, 4096, 14_336, (32, 8), 262_144), **_ssm(8192, 16, 256), **_at(32, [4, 12, 20, 28], 8)}
        | {"expert_count": 16, "expert_used_count": 2},
        "ai21labs/Jamba-v0.1",
    ),
)
