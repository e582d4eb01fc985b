"""Which card each layer is on, and what goes with it, as published logs have it.

Published figures: the two-card and partial-offload cases of people's servers; each test names its own.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from llamarig.gguf import Header
from llamarig.memory import Settings, estimate, read_shape
from llamarig.memory.placement.layers import copies, places
from tests.support.big_models import header_of, keys, qwen35_27b
from tests.support.models import header

HYBRID = header_of(qwen35_27b(mtp=0))
HYBRID_MTP = header_of(qwen35_27b())
LLAMA_8B = header_of(
    keys(
        "llama",
        {
            "block_count": 32,
            "embedding_length": 4096,
            "feed_forward_length": 14_336,
            "attention.head_count": 32,
            "attention.head_count_kv": 8,
        },
    )
)
TWO = Settings(context=8192, cards=2)


def column(term: str, settings: Settings, model: Header = HYBRID) -> list[float]:
    found = estimate(model, settings)
    return [round(terms.get(term, 0.0), 2) for terms in found.devices]


def counts(settings: Settings) -> list[int]:
    found = places(read_shape(HYBRID), settings)
    return [found.count(card) for card in (None, 0, 1, 2)]


def test_equal_cards_get_runs_of_layers_and_the_last_one_the_output() -> None:
    found = places(read_shape(HYBRID), TWO)
    assert found == (0,) * 33 + (1,) * 32
    assert len(found) == 65


def test_shares_move_the_boundary() -> None:
    assert counts(replace(TWO, tensor_split=(3.0, 1.0))) == [0, 49, 16, 0]
    assert counts(replace(TWO, tensor_split=(1.0, 0.0))) == [0, 65, 0, 0]
    assert counts(replace(TWO, cards=3)) == [0, 22, 22, 21]


def test_a_layer_at_the_boundary_falls_to_the_next_card() -> None:
    # 66 parts with the MTP layer: 33/66 is not below 1/2.
    assert places(read_shape(HYBRID_MTP), TWO) == (0,) * 33 + (1,) * 33


def test_offload_counts_from_the_output_and_shares_what_is_on_cards() -> None:
    assert counts(replace(TWO, gpu_layers=20)) == [45, 10, 10, 0]
    assert counts(replace(TWO, gpu_layers=0)) == [65, 0, 0, 0]
    assert counts(replace(TWO, gpu_layers=999)) == [0, 33, 32, 0]
    assert counts(replace(TWO, backend="cpu")) == [65, 0, 0, 0]


def test_caches_of_two_cards_as_published() -> None:
    """A 27B over two RTX 3090, build of 2026-07-27: context columns of 333 and 327 MiB, whole MiB."""
    state, cache = column("recurrent-state", TWO), column("kv-cache", TWO)
    assert [int(a + b) for a, b in zip(state, cache, strict=True)] == [333, 327]
    four = replace(TWO, parallel=4, kv_unified=True)
    state, cache = column("recurrent-state", four), column("kv-cache", four)
    assert [int(a + b) for a, b in zip(state, cache, strict=True)] == [567, 542]


def test_a_pipeline_of_two_cards_as_published() -> None:
    """A 27B with its MTP head on two cards, build of 2026-07-11: the engine's lines for 524,288 cells, ubatch 1024."""
    settings = replace(TWO, context=524_288, ubatch=1024, speculation="draft-mtp", n_max=3)
    assert column("kv-cache", settings, HYBRID_MTP) == [16_384.0, 16_384.0]
    assert column("recurrent-state", settings, HYBRID_MTP) == [311.72, 286.78]
    assert column("draft-kv-cache", settings, HYBRID_MTP) == [0.0, 2048.0]
    first, second = column("draft-compute", settings, HYBRID_MTP)
    assert first == 0.0
    assert second == pytest.approx(4500.13, rel=0.001)


def test_partial_offload_as_published() -> None:
    """Lines of the engine: a 27B with 26 layers on its card, and a llama of 8B with 15, output included."""
    found = estimate(HYBRID, Settings(context=131_072, ubatch=1024, batch=1024, gpu_layers=26))
    assert (found.device["kv-cache"], found.host["kv-cache"]) == (3584.0, 4608.0)
    assert round(found.device["recurrent-state"], 2) == 56.11
    assert round(found.host["recurrent-state"], 2) == 93.52
    small = estimate(LLAMA_8B, Settings(context=32_768, batch=512, gpu_layers=15))
    assert (small.device["kv-cache"], small.host["kv-cache"]) == (1792.0, 2304.0)
    assert round(small.host["compute"], 2) == pytest.approx(48.01, abs=0.5)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, 4),
        ({"cards": 1}, 1),
        ({"split_mode": "tensor"}, 1),
        ({"gpu_layers": 64}, 1),
        ({"gpu_layers": 65}, 4),
        ({"cpu_experts": 1}, 1),
        ({"overrides": (("nothing", None),)}, 1),
        ({"pipeline": False}, 1),
        ({"backend": "cpu"}, 1),
    ],
)
def test_a_pipeline_needs_whole_layers_on_several_cards(change: dict[str, object], expected: int) -> None:
    assert copies(read_shape(HYBRID), replace(TWO, **change)) == expected  # type: ignore[arg-type] # fields by their names


def test_a_pipeline_and_what_the_server_falls_back_to_as_published() -> None:
    """A 30B-A3B with a window of 131,072 in q4_0 over an RTX 5060 Ti and an RTX 2060, build of 2026-09-26."""
    settings = Settings(context=131_072, cache_k="q4_0", cache_v="q4_0", cards=2, tensor_split=(3.0, 1.0))
    model = header("qwen3moe-30b-a3b")
    assert column("compute", settings, model) == [808.35, 808.35]
    assert column("compute", replace(settings, pipeline=False), model) == [408.09, 408.09]


@pytest.mark.parametrize("cards", [1, 2, 3, 5])
@pytest.mark.parametrize("gpu_layers", [None, 1, 30, 64])
def test_whatever_the_placement_no_byte_is_lost(cards: int, gpu_layers: int | None) -> None:
    whole = estimate(HYBRID_MTP, replace(TWO, cards=1, speculation="draft-mtp", n_max=2))
    placed = estimate(HYBRID_MTP, replace(TWO, cards=cards, gpu_layers=gpu_layers, speculation="draft-mtp", n_max=2))
    assert len(placed.devices) == cards
    for term in ("weights", "kv-cache", "recurrent-state", "draft-weights", "draft-kv-cache"):
        before = whole.device.get(term, 0.0) + whole.host.get(term, 0.0)
        after = placed.device.get(term, 0.0) + placed.host.get(term, 0.0)
        assert after == pytest.approx(before), term
