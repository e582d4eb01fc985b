"""Compute buffers that the engine itself printed, in MiB, for published models and drawn settings.

HOST: ``llama-fit-params -fitp on -lv 5`` of build 10454 on the CPU backend. CARDS: the same over remote devices (two
servers of the RPC backend) whose backend was changed for the purpose to align, to stage K and V, to borrow weights from
RAM and to run four graphs at once as the CUDA backend does; without repacking of weights. UNIFIED: lines of
``llama-server`` with one cache for all slots, where one row of logits a slot is reserved.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from llamarig.gguf import Header
from llamarig.memory import Settings
from llamarig.memory.engines import JUNE_2026
from tests.support import models

Drawn = tuple[int, int, int, str, str, bool]
"""Context, ubatch, slots, types of K and V, flash attention."""


@cache
def header(name: str, vocabulary: int = 0) -> Header:
    """A published model's header; with a small vocabulary, logits do not hide what else there is."""
    if not vocabulary:
        return models.header(name)
    small = f"{name}@{vocabulary}"
    models.MODELS[small] = replace(models.MODELS[name], name=small, vocabulary=vocabulary)
    found = models.header(small)
    del models.MODELS[small]
    return found


def settings(drawn: Drawn, **more: Any) -> Settings:
    """The same for llamarig's model, in the era of build 10454."""
    context, ubatch, slots, cache_k, cache_v, flash = drawn
    return Settings(
        context=context,
        ubatch=ubatch,
        parallel=slots,
        cache_k=cache_k,
        cache_v=cache_v,
        flash_attention=flash,
        era=JUNE_2026,
        **more,
    )


HOST: list[tuple[str, int, Drawn, float]] = [
    ("llama-3.1-8b", 0, (32768, 64, 1, "f16", "f16", True), 33.31),
    ("llama-3.1-8b", 0, (8192, 2048, 4, "f16", "f16", True), 1066.01),
    ("llama-3.1-8b", 0, (16384, 100, 2, "f32", "f32", True), 73.38),
    ("llama-3.1-8b", 0, (32768, 128, 8, "q4_0", "q4_0", True), 66.63),
    ("llama-3.1-8b", 0, (32768, 256, 1, "f16", "f32", False), 1078.00),
    ("llama-3.3-70b", 512, (16384, 512, 3, "f16", "f16", True), 237.98),
    ("llama-3.3-70b", 512, (4096, 128, 4, "q4_0", "q4_0", True), 58.33),
    ("llama-3.3-70b", 512, (16384, 1024, 1, "f32", "f32", True), 464.03),
    ("llama-3.3-70b", 512, (8192, 1024, 4, "q5_1", "f32", False), 656.08),
    ("llama-3.3-70b", 0, (8192, 256, 8, "q5_1", "q5_1", True), 141.25),
    ("qwen3-32b", 0, (65536, 512, 4, "f32", "f32", True), 334.01),
    ("qwen3-32b", 512, (65536, 64, 1, "f32", "f32", False), 1048.25),
    ("qwen3-32b", 512, (50000, 512, 4, "q5_1", "q5_1", True), 208.34),
    ("qwen3-32b", 512, (65536, 256, 1, "bf16", "f32", False), 4193.00),
    ("qwen3-32b", 512, (65536, 512, 1, "q8_0", "q8_0", True), 260.09),
    ("qwen2.5-7b", 0, (32768, 64, 2, "f16", "f16", True), 38.88),
    ("qwen2.5-7b", 512, (4096, 512, 1, "bf16", "bf16", True), 143.01),
    ("qwen2.5-7b", 0, (65536, 128, 1, "f32", "f32", True), 152.75),
    ("qwen2.5-7b", 0, (50000, 512, 1, "q4_0", "q4_0", True), 318.00),
    ("qwen2.5-7b", 512, (65536, 128, 1, "f32", "f32", False), 937.25),
    ("qwen3-0.6b", 0, (50000, 512, 3, "q5_1", "f32", False), 576.20),
    ("qwen3-0.6b", 512, (4096, 256, 2, "f16", "f16", True), 14.01),
    ("qwen3-0.6b", 512, (16384, 2048, 1, "q8_0", "f16", False), 2232.10),
    ("qwen3-0.6b", 0, (16384, 256, 1, "f16", "f16", True), 160.38),
    ("qwen3-0.6b", 512, (50000, 2048, 2, "q5_1", "q5_1", True), 202.13),
    ("ministral3-8b", 512, (8192, 256, 1, "f32", "f32", True), 62.01),
    ("ministral3-8b", 0, (65536, 2048, 1, "q4_0", "f16", False), 17040.11),
    ("ministral3-8b", 0, (2048, 512, 8, "q8_0", "q8_0", True), 272.00),
    ("ministral3-8b", 0, (8192, 512, 4, "q8_0", "f16", False), 272.00),
    ("ministral3-8b", 0, (65536, 512, 1, "f16", "f16", True), 272.00),
    ("mixtral-8x7b", 512, (2048, 128, 3, "f16", "f32", False), 51.44),
    ("mixtral-8x7b", 0, (16384, 128, 8, "f16", "f16", True), 50.50),
    ("mixtral-8x7b", 0, (50000, 100, 1, "f16", "f32", False), 640.24),
    ("mixtral-8x7b", 512, (2048, 64, 1, "f32", "f32", True), 25.25),
    ("mixtral-8x7b", 0, (4096, 256, 8, "q4_0", "q4_0", True), 100.33),
]
"""Model, vocabulary (0: its own), settings and MiB."""

Placed = tuple[int | None, int, tuple[float, ...]]
"""Layers on cards, cards, and each card's share."""

CARDS: list[tuple[str, int, Drawn, Placed, list[float]]] = [
    ("llama-3.1-8b", 0, (4096, 64, 1, "f16", "f16", False), (16, 1, ()), [60.44, 3.5]),
    ("llama-3.1-8b", 512, (32768, 64, 8, "f16", "f16", True), (32, 1, ()), [139.0, 2.5]),
    ("llama-3.1-8b", 512, (32768, 128, 4, "q5_1", "q5_1", True), (1, 1, ()), [191.06, 6.08]),
    ("llama-3.1-8b", 0, (2048, 100, 1, "q5_1", "q5_1", True), (None, 1, ()), [50.49, 3.6]),
    ("qwen3-32b", 512, (4096, 256, 1, "q5_1", "q5_1", True), (None, 1, ()), [95.08, 12.08]),
    ("qwen3-32b", 512, (4096, 2048, 1, "f32", "f16", False), (None, 2, (3.0, 1.0)), [2608.09, 2768.12, 272.16]),
    ("qwen3-32b", 512, (8192, 256, 4, "f32", "f16", False), (None, 1, ()), [158.0, 14.0]),
    ("qwen3-32b", 0, (32768, 2048, 1, "f16", "f16", True), (64, 1, ()), [1227.0, 208.05]),
    ("qwen2.5-7b", 512, (8192, 1024, 1, "q8_0", "q8_0", True), (14, 2, (3.0, 1.0)), [330.52, 266.1, 44.11]),
    ("qwen2.5-7b", 512, (65536, 100, 1, "f16", "f16", True), (None, 2, (1.0, 1.0)), [81.26, 86.73, 52.75]),
    ("qwen2.5-7b", 0, (2048, 512, 2, "f32", "f32", True), (14, 2, (3.0, 1.0)), [182.33, 311.0, 15.01]),
    ("qwen2.5-7b", 512, (2048, 1024, 4, "f16", "f32", False), (1, 2, (3.0, 1.0)), [307.32, 0.0, 34.02]),
    ("mixtral-8x7b", 0, (16384, 100, 1, "q4_0", "q4_0", True), (None, 1, ()), [73.46, 6.33]),
    ("mixtral-8x7b", 0, (8192, 256, 3, "f32", "f32", True), (None, 2, (1.0, 2.0)), [118.44, 134.57, 13.63]),
    ("mixtral-8x7b", 0, (32768, 128, 1, "f16", "f16", True), (None, 2, (1.0, 1.0)), [88.01, 96.01, 36.01]),
    ("mixtral-8x7b", 0, (4096, 2048, 1, "q5_1", "f32", False), (16, 1, ()), [1234.07, 112.1]),
    ("qwen3moe-30b-a3b", 0, (8192, 100, 2, "bf16", "bf16", True), (1, 1, ()), [169.22, 2.35]),
    ("qwen3moe-30b-a3b", 0, (32768, 512, 4, "f32", "f32", True), (48, 2, (1.0, 1.0)), [217.79, 300.75, 16.01]),
    ("qwen3moe-30b-a3b", 0, (8192, 128, 3, "f16", "f16", True), (None, 1, ()), [75.19, 2.71]),
    ("qwen3moe-30b-a3b", 0, (4096, 1024, 3, "f16", "f16", True), (24, 1, ()), [601.5, 19.06]),
    ("gemma3-27b", 512, (8192, 64, 2, "q5_1", "f32", False), (None, 1, ()), [39.06, 6.06]),
    ("gemma3-27b", 512, (2048, 512, 1, "f32", "f32", True), (1, 1, ()), [201.02, 24.52]),
    ("gemma3-27b", 512, (65536, 512, 3, "f16", "f16", True), (None, 1, ()), [178.37, 44.11]),
    ("gemma3-27b", 512, (2048, 2048, 2, "f16", "f16", True), (31, 1, ()), [724.02, 92.09]),
    ("gpt-oss-20b", 0, (4096, 512, 1, "q5_1", "f32", False), (None, 1, ()), [544.79, 24.79]),
    ("gpt-oss-20b", 512, (16384, 256, 2, "f16", "f16", True), (24, 1, ()), [165.43, 9.89]),
    ("gpt-oss-20b", 0, (4096, 1024, 8, "bf16", "bf16", True), (None, 1, ()), [810.04, 24.54]),
    ("gpt-oss-20b", 0, (8192, 64, 8, "f32", "f32", True), (12, 1, ()), [142.22, 1.57]),
    ("gemma4-e2b", 512, (2048, 512, 1, "f16", "f16", True), (18, 1, ()), [131.5, 26.52]),
    ("gemma4-e2b", 512, (50000, 256, 3, "f16", "f32", False), (None, 1, ()), [174.61, 31.25]),
    ("gemma4-26b-a4b", 0, (8192, 128, 2, "bf16", "f16", False), (None, 2, (1.0, 1.0)), [77.79, 170.67, 29.26]),
    ("gemma4-26b-a4b", 512, (8192, 256, 1, "f16", "f16", False), (None, 2, (1.0, 2.0)), [235.58, 246.59, 74.53]),
    ("deepseek-v2-lite", 0, (65536, 64, 1, "f16", "f16", True), (1, 1, ()), [345.19, 9.0]),
    ("deepseek-v2-lite", 512, (65536, 2048, 1, "bf16", "bf16", True), (27, 1, ()), [731.37, 288.04]),
    ("qwen35-9b", 0, (65536, 100, 1, "f16", "f16", True), (32, 1, ()), [97.85, 17.28]),
    ("qwen35-9b", 0, (50000, 64, 8, "f16", "f16", False), (None, 2, (3.0, 1.0)), [52.76, 78.88, 10.26]),
    ("qwen3next-80b-a3b", 512, (65536, 256, 1, "bf16", "f16", False), (48, 2, (1.0, 2.0)), [1109.32, 1105.0, 75.1]),
    ("qwen3next-80b-a3b", 512, (8192, 1024, 1, "q8_0", "q8_0", True), (48, 1, ()), [538.08, 56.38]),
    ("phi4", 0, (2048, 64, 1, "f16", "f16", True), (20, 1, ()), [122.03, 3.66]),
    ("phi4", 0, (2048, 512, 1, "q4_0", "q4_0", True), (None, 2, (3.0, 1.0)), [183.35, 294.36, 28.37]),
    (
        "nemotron-3-nano-30b-a3b",
        512,
        (8192, 512, 2, "q5_1", "q5_1", True),
        (None, 2, (3.0, 1.0)),
        [111.59, 127.35, 26.86],
    ),
    ("nemotron-3-nano-30b-a3b", 0, (16384, 100, 1, "f16", "f16", True), (1, 2, (1.0, 2.0)), [1076.2, 0.0, 14.72]),
    ("lfm2-8b-a1b", 512, (50000, 1024, 3, "f32", "f32", False), (None, 2, (3.0, 1.0)), [2460.89, 2492.97, 296.66]),
    ("lfm2-8b-a1b", 512, (4096, 100, 1, "f16", "f16", True), (1, 1, ()), [100.88, 2.36]),
    ("qwen35-9b", 512, (512, 512, 8, "bf16", "bf16", True), (30, 1, ()), [147.64, 25.02]),
    ("qwen35-9b", 512, (65536, 512, 8, "bf16", "bf16", True), (32, 1, ()), [343.39, 32.77]),
]
"""Model, vocabulary, settings, placement, and MiB of each card and of the host."""

UNIFIED: list[tuple[str, int, Drawn, float]] = [
    ("qwen3-0.6b", 512, (512, 512, 3, "f16", "f16", True), 26.56),
    ("qwen3-0.6b", 512, (512, 512, 2, "q4_0", "q4_0", True), 26.59),
    ("qwen3-0.6b", 512, (512, 100, 3, "f16", "f16", True), 5.28),
    ("qwen3-0.6b", 512, (8192, 256, 4, "f16", "f16", True), 17.01),
]
