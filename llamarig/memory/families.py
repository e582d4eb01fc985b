"""Architectures whose memory the engine lays out in a way that is known here.

Each set or number was read in the engine's source, build 10454, and compared with v0.4.0 and commit 0c1e57098:
``load_arch_hparams`` of src/models/<name>.cpp, ``llama_model::create_memory`` in src/llama-model.cpp and
the lists at the end of src/llama-arch.cpp. An architecture that is in none of them is planned with an explicit
reserve only.
"""

from __future__ import annotations

from typing import Final, NamedTuple

PLAIN: Final = frozenset(
    {
        "apertus",
        "arcee",
        "arctic",
        "baichuan",
        "bailingmoe",
        "bailingmoe2",
        "bitnet",
        "bloom",
        "chameleon",
        "chatglm",
        "codeshell",
        "cogvlm",
        "command-r",
        "dbrx",
        "deci",
        "deepseek",
        "deepseek2-ocr",
        "dots1",
        "eagle3",
        "ernie4_5",
        "ernie4_5-moe",
        "exaone",
        "falcon",
        "gemma",
        "glm4",
        "glm4moe",
        "gpt2",
        "gptneox",
        "granite",
        "granitemoe",
        "grok",
        "grovemoe",
        "hunyuan-dense",
        "hunyuan-moe",
        "hunyuan_vl",
        "hy_v3",
        "internlm2",
        "jais",
        "jais2",
        "llama",
        "llama-embed",
        "maincoder",
        "minicpm",
        "minicpm3",
        "minimax-m2",
        "mistral3",
        "mpt",
        "nemotron",
        "olmo",
        "olmoe",
        "openelm",
        "orion",
        "paddleocr",
        "pangu-embedded",
        "phi2",
        "phi3",
        "phimoe",
        "plamo",
        "plm",
        "qwen",
        "qwen2",
        "qwen2moe",
        "qwen2vl",
        "qwen3",
        "qwen3moe",
        "qwen3vl",
        "qwen3vlmoe",
        "refact",
        "seed_oss",
        "smollm3",
        "stablelm",
        "starcoder",
        "starcoder2",
        "talkie",
        "xverse",
    }
)
"""Attention in every layer, one KV cache over the whole window."""


class Sliding(NamedTuple):
    """Every ``period``-th layer sees the whole window, the others only the last ``window`` tokens."""

    period: int
    """0: all layers slide."""
    window: int | None = None
    """Tokens when the file does not say; None: the file must say, else nothing slides."""
    full_first: bool = False
    """The first layer of a period sees all, not the last."""
    fixed: int | None = None
    """Tokens whatever the file says, unless it says 0."""
    listed: bool = False
    """The file may list the layers; elsewhere a list in the file is ignored."""


SLIDING: Final[dict[str, Sliding]] = {
    "afmoe": Sliding(4),
    "cohere2": Sliding(4),
    "cohere2moe": Sliding(4, full_first=True, listed=True),
    "exaone-moe": Sliding(4),
    "exaone4": Sliding(4, 4096),
    "gemma2": Sliding(2, 4096),
    "gemma3": Sliding(6),
    "gemma3n": Sliding(5),
    "gpt-oss": Sliding(2),
    "laguna": Sliding(4, full_first=True),
    "llama4": Sliding(4, 8192, fixed=8192),
    "mellum": Sliding(4, listed=True),
    "muse-glimmer": Sliding(4, listed=True),
    "olmo2": Sliding(4),
    "plamo3": Sliding(8),
    "smallthinker": Sliding(4, full_first=True, fixed=4096),
}
"""Sliding-window attention by a period.

An MTP layer sees the whole window; only before 0.4.0 did that of exaone-moe slide, so there a plan is high.
"""

READERS: Final = frozenset({"eagle3", "dflash"})
"""Drafters that are fed with rows of the target's layers."""

LISTED: Final = frozenset(
    {"dflash", "gemma4", "gemma4-assistant", "granite_swa", "maple", "mimo2", "spark2_5", "step35"}
)
"""Sliding-window attention in the layers that the file lists."""

SLIDING_IN: Final[dict[str, int]] = {"exaone4": 64}
"""Architectures that slide in the size with that many layers only."""

INTERVAL: Final[dict[str, int]] = {"qwen35": 4, "qwen35moe": 4, "qwen3next": 4, "minimax-01": 8}
"""Linear attention with full attention in every n-th layer (``full_attention_interval``, and its default)."""

BY_KV_HEADS: Final = frozenset(
    {
        "bailingmoe3",
        "granitehybrid",
        "jamba",
        "kimi-k3",
        "kimi-linear",
        "lfm2",
        "lfm2moe",
        "nemotron_h",
        "nemotron_h_moe",
        "plamo2",
    }
)
"""Hybrids in which a layer without KV heads is recurrent."""

BOTH: Final = frozenset({"falcon-h1"})
"""Hybrids in which every layer has attention and a state."""

RECURRENT: Final = frozenset({"mamba", "mamba2", "rwkv6", "rwkv6qwen2", "rwkv7", "arwkv7"})
"""No attention at all."""

LATENT: Final = frozenset({"bailingmoe3", "deepseek2", "deepseek32", "glm-dsa", "kimi-k3", "kimi-linear", "mistral4"})
"""Multi-head latent attention where the file has ``key_length_mla``: K alone is kept, compressed."""

INDEXED: Final = frozenset({"deepseek32", "glm-dsa", "minimax-m3"})
"""Sparse attention: a second cache keeps one key head of the indexer per token."""

COMPRESSED: Final = frozenset({"deepseek4"})
"""A window, compressed keys and the state of the compressors: see compressed.py."""

CACHELESS: Final = frozenset(
    {
        "bert",
        "dream",
        "eurobert",
        "gemma-embedding",
        "jina-bert-v2",
        "jina-bert-v3",
        "llada",
        "llada-moe",
        "modern-bert",
        "neo-bert",
        "nomic-bert",
        "nomic-bert-moe",
        "rnd1",
    }
)
"""Encoders and diffusion models: ``create_memory`` gives them none."""

BORROWING: Final = frozenset({"gemma4-assistant"})
"""Drafters that read the target's KV cache and keep none of their own."""

KEPT_LAYERS: Final[dict[str, int]] = {"gemma3n": 20}
"""Only the first layers keep K and V; gemma4's file says how many of the last do not."""

TRUNK_ONLY: Final = frozenset(
    {"deepseek32", "glm-dsa", "hy_v3", "mimo2", "minimax-01", "qwen35", "qwen35moe", "qwen3next", "step35"}
)
"""The target's cache leaves the MTP layers out; elsewhere they have rows there as well, MTP or not."""

MTP: Final = TRUNK_ONLY | {"nemotron_h_moe", "bailingmoe3", "deepseek4"}
"""The MTP context keeps KV for the MTP layers only; elsewhere it keeps every layer once more."""

ROLLBACK: Final = frozenset(
    {"bailingmoe3", "deepseek4", "lfm2", "lfm2moe", "nemotron_h", "nemotron_h_moe", "qwen35", "qwen35moe"}
)
"""State snapshots exist for these alone; source: ``llm_arch_supports_rs_rollback`` in src/llama-arch.cpp.

The lfm2s and bailingmoe3 came with v0.4.0; older engines keep none for them, so there a plan is a little high.
"""

TWICE: Final = frozenset({"gemma3n", "gemma4"})
"""Tied models that make the output before the embedding, so that the loader finds no tensor to share on the host."""

GATED: Final = frozenset({"qwen35", "qwen35moe", "qwen3next"})
"""The query projection carries an output gate of the same width."""

KNOWN: Final = (
    PLAIN
    | SLIDING.keys()
    | LISTED
    | INTERVAL.keys()
    | BY_KV_HEADS
    | BOTH
    | RECURRENT
    | LATENT
    | INDEXED
    | COMPRESSED
    | CACHELESS
)
