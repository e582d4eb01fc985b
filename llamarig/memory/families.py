"""Architectures whose memory the engine lays out in a way that is known here.

Each set or number was read in the engine's source, build 10454: ``load_arch_hparams`` of
src/models/<name>.cpp and ``llama_model::create_memory`` in src/llama-model.cpp.
"""

from __future__ import annotations

from typing import Final, NamedTuple

PLAIN: Final = frozenset(
    {
        "llama",
        "qwen",
        "qwen2",
        "qwen2moe",
        "qwen2vl",
        "qwen3",
        "qwen3moe",
        "qwen3vl",
        "qwen3vlmoe",
        "mistral3",
        "gemma",
        "phi2",
        "starcoder2",
        "internlm2",
        "command-r",
        "seed_oss",
        "exaone",
        "stablelm",
        "minicpm",
        "ernie4_5",
        "ernie4_5-moe",
        "hunyuan-dense",
        "hunyuan-moe",
        "dots1",
        "arcee",
        "bailingmoe",
        "granite",
        "granitemoe",
        "smollm3",
        "olmo",
        "olmoe",
        "glm4",
        "glm4moe",
        "falcon",
        "gpt2",
        "gptneox",
        "baichuan",
        "xverse",
        "orion",
        "deepseek",
    }
)
"""Attention in every layer, one KV cache over the whole window."""


class Sliding(NamedTuple):
    """Every ``period``-th layer sees the whole window, the others only the last ``window`` tokens."""

    period: int
    window: int | None
    """Tokens when the file does not say; None: the file must say, else nothing slides."""


SLIDING: Final[dict[str, Sliding]] = {
    "gemma2": Sliding(2, 4096),
    "gemma3": Sliding(6, None),
    "gemma4": Sliding(0, None),
    "gpt-oss": Sliding(2, None),
    "cohere2": Sliding(4, None),
    "olmo2": Sliding(4, None),
}
"""Sliding-window attention; period 0: the file gives the pattern layer by layer."""

INTERVAL: Final = frozenset({"qwen35", "qwen35moe", "qwen3next"})
"""Gated DeltaNet with full attention in every n-th layer (``full_attention_interval``, 4)."""

BY_KV_HEADS: Final = frozenset({"jamba", "granitehybrid", "lfm2", "lfm2moe", "nemotron_h", "nemotron_h_moe"})
"""Hybrids in which a layer without KV heads is recurrent."""

BOTH: Final = frozenset({"falcon-h1"})
"""Hybrids in which every layer has attention and a state."""

RECURRENT: Final = frozenset({"mamba", "mamba2"})
"""No attention at all."""

LATENT: Final = frozenset({"deepseek2"})
"""Multi-head latent attention: K alone is kept, compressed."""

MTP: Final = frozenset({"qwen35", "qwen35moe", "qwen3next"})
"""The MTP context keeps KV for the MTP layers only."""

ROLLBACK: Final = frozenset({"qwen35", "qwen35moe", "deepseek4", "nemotron_h", "nemotron_h_moe"})
"""State snapshots exist for these alone; source: ``llm_arch_supports_rs_rollback`` in src/llama-arch.cpp."""

GATED: Final = frozenset({"qwen35", "qwen35moe", "qwen3next"})
"""The query projection carries an output gate of the same width."""

KNOWN: Final = PLAIN | SLIDING.keys() | INTERVAL | BY_KV_HEADS | BOTH | RECURRENT | LATENT

EXACT_COMPUTE: Final = frozenset({"llama", "qwen2", "qwen3", "mistral3", "qwen35"})
"""Architectures whose compute buffers were compared with the engine's own lines."""
