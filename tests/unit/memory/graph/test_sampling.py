"""The pass of a drafter that chooses tokens where its logits are, against what a server of build 10454 reserved.

The model has a vocabulary of 60,000 and the dimensions of ``tests.support.tiny_models``; the CPU backend.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from llamarig.gguf import Header
from llamarig.memory import Settings, read_shape
from llamarig.memory.draft_compute import draft_compute_bytes
from llamarig.memory.engines import JUNE_2026
from llamarig.memory.graph.reserve import reserve_head
from llamarig.memory.units import MIB
from llamarig.memory.window import cut
from tests.support import gguf_bytes as raw
from tests.support.big_models import header_of, keys

VOCABULARY = 60_000
DIMENSIONS: dict[str, int | list[int] | bool] = {
    "block_count": 5,
    "nextn_predict_layers": 1,
    "context_length": 32_768,
    "embedding_length": 320,
    "feed_forward_length": 384,
    "attention.head_count": 4,
    "attention.head_count_kv": 2,
    "attention.key_length": 64,
    "attention.value_length": 64,
    "full_attention_interval": 4,
    "ssm.conv_kernel": 4,
    "ssm.inner_size": 512,
    "ssm.state_size": 64,
    "ssm.time_step_rank": 8,
    "ssm.group_count": 4,
}


def header() -> Header:
    composed = keys("qwen35", DIMENSIONS)
    composed.pairs.append(raw.array("tokenizer.ggml.tokens", raw.STRING, ["x"] * VOCABULARY))
    return header_of(composed)


HEADER = header()
SHAPE = read_shape(HEADER)
ONE = Settings(context=8192, backend="cpu", era=JUNE_2026, speculation="draft-mtp", n_max=4)
THREE = replace(ONE, context=24_000, parallel=3, ubatch=32)
EIGHT = replace(ONE, context=16_000, parallel=8, batch=256, ubatch=16)


def head(settings: Settings) -> float:
    """MiB."""
    return reserve_head(HEADER, SHAPE, settings, cut(settings)).host / MIB


@pytest.mark.parametrize(("settings", "reserved"), [(ONE, 11.27), (THREE, 1.75), (EIGHT, 3.97)])
def test_a_heads_pass_is_what_the_engine_reserves_once_it_has_samplers(settings: Settings, reserved: float) -> None:
    assert round(head(settings), 2) == reserved


@pytest.mark.parametrize(("settings", "reserved"), [(ONE, 11.27), (THREE, 0.83), (EIGHT, 1.91)])
def test_before_that_it_has_no_copy_of_its_logits(settings: Settings, reserved: float) -> None:
    assert round(head(replace(settings, era=replace(JUNE_2026, draft_sampling=False))), 2) == reserved


def test_a_split_by_tensors_samples_on_the_host() -> None:
    cards = replace(THREE, backend="cuda", cards=2)
    window = cut(cards)
    layers = reserve_head(HEADER, SHAPE, cards, window).cards[-1]
    tensors = reserve_head(HEADER, SHAPE, replace(cards, split_mode="tensor"), window).cards[-1]
    assert layers - tensors >= (3 + 1) * VOCABULARY * 4


def test_the_bound_of_a_head_that_is_not_known_has_the_copy() -> None:
    for settings in (ONE, THREE, EIGHT):
        assert draft_compute_bytes(HEADER, SHAPE, settings, cut(settings)) / MIB >= head(settings)
