"""Models of published cases that the comparison with the engine's fit tool does not need."""

from __future__ import annotations

from dataclasses import replace

from tests.support.models import MODELS as COMPARED
from tests.support.models import layouts, special
from tests.support.models.model import Keys, Model, blocks, heads

_GEMMA4: Keys = {
    **heads(512),
    "attention.key_length_swa": 256,
    "attention.value_length_swa": 256,
    "attention.sliding_window": 1024,
    "embedding_length_per_layer_input": 0,
}


def _gemma4(layers: int, sliding: int, full: int) -> Keys:
    """Five sliding layers, then one that sees everything, each kind with its KV heads."""
    slides = [layer % 6 != 5 for layer in range(layers)]
    return {
        **_GEMMA4,
        "attention.sliding_window_pattern": slides,
        "attention.head_count_kv": [sliding if slid else full for slid in slides],
    }


def _stretched(model: Model, layers: int) -> Model:
    """The same blocks, ``layers`` of them and the MTP head."""
    return replace(model, name=f"{model.name}-{layers}", keys={**model.keys, "block_count": layers + 1})


_OWN = (
    replace(
        _stretched(COMPARED["qwen35-27b"], 96),
        name="qwen35-40b",
        origin="the 27B's blocks, 96 of them: case 59",
    ),
    Model(
        "qwen3-4b",
        "qwen3",
        151_936,
        layouts.QWEN3,
        {**blocks(36, 2560, 9728, (32, 8), 262_144), **heads(128)},
        "Qwen/Qwen3-4B-Instruct-2507",
        tied=True,
    ),
    Model(
        "mistral-small-24b",
        "llama",
        131_072,
        layouts.LLAMA,
        {**blocks(40, 5120, 32_768, (32, 8), 131_072), **heads(128), "rope.dimension_count": 128},
        "mistralai/Mistral-Small-3.2-24B-Instruct-2506, which Magidonia 24B was trained from",
    ),
    Model(
        "gemma4-12b",
        "gemma4",
        262_144,
        special.gemma4,
        {**blocks(48, 3840, 15_360, (16, 8), 131_072), **_gemma4(48, 8, 1)},
        "cases 35 to 39: 480 MiB in 40 sliding layers of 1,536 cells and 16 KiB a token in the 8 others; the widths "
        "besides K and V are no published ones and bear on none of the figures held",
        tied=True,
    ),
    Model(
        "gemma4-31b",
        "gemma4",
        262_144,
        special.gemma4,
        {**blocks(60, 5376, 21_504, (32, 16), 262_144), **_gemma4(60, 16, 4)},
        "google/gemma-4-31B-it",
        tied=True,
    ),
    Model(
        "talkie-13b",
        "talkie",
        65_540,
        layouts.LLAMA,
        {**blocks(40, 5120, 13_696, (40, 40), 2048), **heads(128)},
        "case 109: its cache and the file's 11,577,024,512 bytes fix heads, vocabulary and feed-forward part",
    ),
    Model(
        "lfm2-350m",
        "lfm2",
        65_536,
        special.lfm2,
        {**blocks(16, 1024, 4608, (16, 8), 128_000), "shortconv.l_cache": 3}
        | {"attention.head_count_kv": [8 if layer in (2, 5, 8, 10, 12, 14) else 0 for layer in range(16)]},
        "LiquidAI/LFM2-350M",
        tied=True,
    ),
)

MODELS: dict[str, Model] = {**COMPARED, **{model.name: model for model in _OWN}}
"""By the name that a case gives."""
