"""Models of further architectures with attention in every layer."""

from __future__ import annotations

from tests.support.models import layouts
from tests.support.models.model import Keys, Model, blocks, experts, heads

_VISION: Keys = {"rope.dimension_sections": [24, 20, 20, 0], "n_deepstack_layers": 3}
_SHARED: Keys = {"leading_dense_block_count": 1, "expert_weights_norm": True, "expert_weights_scale": 2.5}

FURTHER = (
    Model(
        "qwen2.5-vl-7b",
        "qwen2vl",
        152_064,
        layouts.QWEN2,
        {**blocks(28, 3584, 18_944, (28, 4), 128_000), "rope.dimension_sections": [16, 24, 24, 0]},
        "Qwen/Qwen2.5-VL-7B-Instruct",
    ),
    Model(
        "qwen3vl-8b",
        "qwen3vl",
        151_936,
        layouts.QWEN3,
        {**blocks(36, 4096, 12_288, (32, 8), 262_144), **heads(128), **_VISION},
        "Qwen/Qwen3-VL-8B-Instruct",
    ),
    Model(
        "qwen3vl-30b-a3b",
        "qwen3vlmoe",
        151_936,
        layouts.QWEN3,
        {**blocks(48, 2048, 6144, (32, 4), 262_144), **heads(128), **experts(128, 8, 768), **_VISION},
        "Qwen/Qwen3-VL-30B-A3B-Instruct",
    ),
    Model(
        "ernie4.5-0.3b",
        "ernie4_5",
        103_424,
        layouts.LLAMA,
        {**blocks(18, 1024, 3072, (16, 2), 131_072), **heads(128)},
        "baidu/ERNIE-4.5-0.3B-PT",
        tied=True,
    ),
    Model(
        "ernie4.5-21b-a3b",
        "ernie4_5-moe",
        103_424,
        layouts.LLAMA,
        {**blocks(28, 2560, 12_288, (20, 4), 131_072), **heads(128), **experts(64, 6, 1536, 3072)}
        | {"leading_dense_block_count": 1, "interleave_moe_layer_step": 1},
        "baidu/ERNIE-4.5-21B-A3B-PT",
        tied=True,
    ),
    Model(
        "hunyuan-7b",
        "hunyuan-dense",
        128_167,
        layouts.QWEN3,
        {**blocks(32, 4096, 14_336, (32, 8), 262_144), **heads(128)},
        "tencent/Hunyuan-7B-Instruct",
        tied=True,
    ),
    Model(
        "hunyuan-a13b",
        "hunyuan-moe",
        128_167,
        layouts.QWEN3,
        {**blocks(32, 4096, 3072, (32, 8), 262_144), **heads(128), **experts(64, 8, 3072, 3072)},
        "tencent/Hunyuan-A13B-Instruct",
        tied=True,
    ),
    Model(
        "dots.llm1",
        "dots1",
        152_064,
        layouts.QWEN3,
        {**blocks(62, 4096, 10_944, (32, 32), 32_768), **heads(128), **experts(128, 6, 1408), **_SHARED}
        | {"expert_shared_count": 2, "expert_gating_func": 2},
        "rednote-hilab/dots.llm1.inst",
    ),
    Model(
        "ling-mini-2.0",
        "bailingmoe2",
        157_184,
        layouts.BAILINGMOE2,
        {**blocks(20, 2048, 5120, (16, 4), 32_768), **heads(128), **experts(256, 8, 512, 512), **_SHARED}
        | {"expert_shared_count": 1, "expert_gating_func": 2, "expert_group_count": 8, "expert_group_used_count": 4},
        "inclusionAI/Ling-mini-2.0",
    ),
    Model(
        "minimax-m2",
        "minimax-m2",
        200_064,
        layouts.MINIMAX_M2,
        {**blocks(62, 3072, 1536, (48, 8), 196_608), **heads(128), **experts(256, 8, 1536)}
        | {"rope.dimension_count": 64, "expert_gating_func": 2},
        "MiniMaxAI/MiniMax-M2",
    ),
    Model(
        "olmoe-1b-7b",
        "olmoe",
        50_304,
        layouts.OLMOE,
        {**blocks(16, 2048, 1024, (16, 16), 4096), "expert_count": 64, "expert_used_count": 8},
        "allenai/OLMoE-1B-7B-0125-Instruct",
    ),
    Model(
        "command-r-35b",
        "command-r",
        256_000,
        layouts.COHERE2,
        {**blocks(40, 8192, 22_528, (64, 64), 131_072), "logit_scale": 0.0625},
        "CohereLabs/c4ai-command-r-v01",
        tied=True,
    ),
    Model(
        "starcoder2-3b",
        "starcoder2",
        49_152,
        layouts.STARCODER2,
        blocks(30, 3072, 12_288, (24, 2), 16_384),
        "bigcode/starcoder2-3b",
        tied=True,
    ),
    Model(
        "internlm2.5-7b",
        "internlm2",
        92_544,
        layouts.LLAMA,
        blocks(32, 4096, 14_336, (32, 8), 32_768),
        "internlm/internlm2_5-7b-chat",
    ),
    Model(
        "minitron-4b",
        "nemotron",
        256_000,
        layouts.NEMOTRON,
        {**blocks(32, 3072, 9216, (24, 8), 4096), "rope.dimension_count": 64},
        "nvidia/Minitron-4B-Base",
    ),
    Model(
        "afm-4.5b",
        "arcee",
        128_004,
        layouts.ARCEE,
        {**blocks(36, 2560, 18_432, (20, 4), 65_536), **heads(128)},
        "arcee-ai/AFM-4.5B",
    ),
    Model(
        "deepseek-moe-16b",
        "deepseek",
        102_400,
        layouts.LLAMA,
        {**blocks(28, 2048, 10_944, (16, 16), 4096), **experts(64, 6, 1408)}
        | {"expert_shared_count": 2, "leading_dense_block_count": 1},
        "deepseek-ai/deepseek-moe-16b-chat",
    ),
    Model(
        "exaone3.5-7.8b",
        "exaone",
        102_400,
        layouts.LLAMA,
        blocks(32, 4096, 14_336, (32, 8), 32_768),
        "LGAI-EXAONE/EXAONE-3.5-7.8B-Instruct",
    ),
    Model(
        "k-exaone-236b-a23b",
        "exaone-moe",
        153_600,
        layouts.QWEN3,
        {**blocks(48, 6144, 18_432, (64, 8), 262_144), **heads(128), **experts(128, 8, 2048, 2048), **_SHARED}
        | {
            "expert_shared_count": 1,
            "expert_gating_func": 2,
            "attention.sliding_window": 128,
            "attention.sliding_window_pattern": [layer % 4 < 3 for layer in range(48)],
        },
        "LGAI-EXAONE/K-EXAONE-236B-A23B",
    ),
    Model(
        "phi3.5-moe",
        "phimoe",
        32_064,
        layouts.PHIMOE,
        {**blocks(32, 4096, 6400, (32, 8), 131_072), "expert_count": 16, "expert_used_count": 2},
        "microsoft/Phi-3.5-MoE-instruct",
    ),
    Model(
        "minicpm-2b",
        "minicpm",
        122_753,
        layouts.LLAMA,
        blocks(40, 2304, 5760, (36, 36), 4096),
        "openbmb/MiniCPM-2B-sft-bf16",
        tied=True,
    ),
    Model(
        "apertus-8b",
        "apertus",
        131_072,
        layouts.APERTUS,
        {**blocks(32, 4096, 21_504, (32, 8), 65_536)}
        | {f"xielu.{name}": 0.5 for name in ("alpha_n", "alpha_p", "beta", "eps")},
        "swiss-ai/Apertus-8B-Instruct-2509",
    ),
    Model(
        "trinity-mini",
        "afmoe",
        200_192,
        layouts.AFMOE,
        {**blocks(32, 2048, 6144, (32, 4), 131_072), **heads(128), **experts(128, 8, 1024), **_SHARED}
        | {
            "expert_shared_count": 1,
            "expert_gating_func": 2,
            "leading_dense_block_count": 2,
            "attention.sliding_window": 2048,
        },
        "arcee-ai/Trinity-Mini",
    ),
    Model(
        "mimo-v2-flash",
        "mimo2",
        152_576,
        layouts.MIMO2,
        {**blocks(48, 4096, 16_384, (64, 8), 262_144), **heads(192, 128), **experts(256, 8, 2048)}
        | {
            "attention.head_count_kv": [8 if layer % 6 else 4 for layer in range(48)],
            "attention.sliding_window": 128,
            "attention.sliding_window_pattern": [layer % 6 > 0 for layer in range(48)],
            "attention.value_scale": 0.707,
            "leading_dense_block_count": 1,
        },
        "XiaomiMiMo/MiMo-V2-Flash",
    ),
    Model(
        "step-3.5-flash",
        "step35",
        128_896,
        layouts.STEP35,
        {**blocks(45, 4096, 11_264, (64, 8), 262_144), **heads(128), **experts(288, 8, 1280, 1280), **_SHARED}
        | {
            "attention.head_count": [96 if layer % 4 else 64 for layer in range(45)],
            "attention.sliding_window": 512,
            "attention.sliding_window_pattern": [layer % 4 > 0 for layer in range(45)],
            "expert_gating_func": 2,
            "leading_dense_block_count": 3,
        },
        "stepfun-ai/Step-3.5-Flash",
    ),
)
