"""Tensors that are placed by name: overrides, experts in RAM, tied embeddings."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llamarig.gguf import Header
from llamarig.memory import Settings, estimate, read_shape
from llamarig.memory.placement.tensors import block_of, placing
from tests.support.big_models import MIB, header_of, keys
from tests.support.models import header

ONE = Settings(context=4096)
EXPERT_ROWS = 1024 * 512 * 16
"""Elements of one tensor of experts."""


def experts(*, tied: bool = False) -> Header:
    composed = keys(
        "qwen3moe",
        {
            "block_count": 4,
            "embedding_length": 1024,
            "feed_forward_length": 512,
            "expert_feed_forward_length": 512,
            "expert_count": 16,
            "expert_used_count": 4,
            "attention.head_count": 8,
            "attention.head_count_kv": 2,
            "attention.key_length": 128,
            "attention.value_length": 128,
        },
    )
    composed.tensor("token_embd.weight", "F16", 1024, 1000)
    if not tied:
        composed.tensor("output.weight", "F16", 1024, 1000)
    for block in range(4):
        composed.tensor(f"blk.{block}.attn_q.weight", "F16", 1024, 1024)
        composed.tensor(f"blk.{block}.ffn_gate_exps.weight", "F16", 1024, 512, 16)
        composed.tensor(f"blk.{block}.ffn_down_exps.weight", "F16", 512, 1024, 16)
    return header_of(composed)


MODEL = experts()


def weights(settings: Settings, header: Header = MODEL) -> tuple[list[float], float]:
    found = estimate(header, settings)
    return [terms.get("weights", 0.0) for terms in found.devices], found.host["weights"]


def test_the_number_of_a_block_is_read_from_a_tensors_name() -> None:
    assert [block_of(name) for name in ("blk.7.attn_q.weight", "blk.x.y", "output.weight", "blk.12.a")] == [
        7, None, None, 12,
    ]  # fmt: skip


def test_experts_of_the_first_layers_stay_in_ram() -> None:
    expert = 2 * EXPERT_ROWS * 2 / MIB
    everything, embedding = weights(ONE)
    moved, host = weights(replace(ONE, cpu_experts=3))
    assert moved[0] == pytest.approx(everything[0] - 3 * expert)
    assert host == pytest.approx(embedding + 3 * expert)
    assert weights(replace(ONE, cpu_experts=999))[1] == pytest.approx(embedding + 4 * expert)


def test_the_first_pattern_that_is_found_counts() -> None:
    two = replace(ONE, cards=2, overrides=((r"blk\.0\.ffn_down", 1), ("ffn_down", None)))
    place = placing(read_shape(MODEL), two)
    assert place("blk.0.ffn_down_exps.weight") == 1
    assert place("blk.1.ffn_down_exps.weight") is None
    assert place("blk.0.ffn_gate_exps.weight") == 0
    assert place("output.weight") == 1


def test_a_pattern_counts_before_the_list_of_experts() -> None:
    settings = replace(ONE, cpu_experts=4, overrides=(("ffn_gate_exps", 0),))
    place = placing(read_shape(MODEL), settings)
    assert place("blk.0.ffn_gate_exps.weight") == 0
    assert place("blk.0.ffn_down_exps.weight") is None
    assert place("blk.0.attn_q.weight") == 0


def test_a_pattern_may_bring_the_embedding_to_a_card() -> None:
    settings = replace(ONE, overrides=(("token_embd", 0),))
    embedding = 1024 * 1000 * 2 / MIB
    everything, host = weights(ONE)
    assert host == pytest.approx(embedding)
    found = estimate(MODEL, settings)
    assert found.device["weights"] == pytest.approx(everything[0] + embedding)
    assert "weights" not in found.host


def test_without_cards_everything_is_in_ram() -> None:
    """As the fit tool is asked on a host, whatever the service's own cards are."""
    settings = replace(ONE, backend="cpu", cards=2, overrides=(("ffn_down", 1),), cpu_experts=2)
    found = estimate(MODEL, settings)
    assert found.devices == ()
    assert found.host["weights"] == pytest.approx(sum(tensor.size for tensor in MODEL.tensors) / MIB)


def test_a_tied_embedding_is_in_ram_and_again_with_the_output() -> None:
    tied = experts(tied=True)
    embedding = 1024 * 1000 * 2 / MIB
    cards, host = weights(replace(ONE, cards=2), tied)
    untied, _ = weights(replace(ONE, cards=2))
    assert host == pytest.approx(embedding)
    assert cards == pytest.approx(untied)


def test_what_is_brought_to_the_first_card_is_counted() -> None:
    """Cards compute long passes with experts that lie in RAM, so the biggest tensor of them is brought."""
    model = header("qwen3moe-30b-a3b")
    biggest = max(tensor.size for tensor in model.tensors if tensor.name.startswith("blk.0.ffn_")) / MIB
    on_cards = estimate(model, ONE).device["compute"]
    assert on_cards + 2 * biggest > estimate(model, replace(ONE, cpu_experts=48)).device["compute"] > biggest
