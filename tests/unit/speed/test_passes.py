"""Time of a pass by its width and its window; drafts; what no card can pass."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamarig.catalog.gpus import cards
from llamarig.memory import Settings, read_shape
from llamarig.speed import Work, limits, limits_on, predict, rates_of, work_of
from llamarig.speed.drafting import acceptance, first_of, positions, tokens_per_pass
from llamarig.speed.kernels import CLASSES, VECTOR_WIDTH, class_of, columns
from llamarig.speed.limits import of_bytes
from llamarig.speed.passes import draft_seconds, pass_seconds, together
from llamarig.speed.predict import decode_tok_s, prefill_tok_s, sweep
from tests.support import big_models

SFF = "rtx-pro-4000-blackwell-sff"
RATES = rates_of(SFF, cards()[SFF])
HEADER = big_models.header_of(big_models.qwen35_27b())
SHAPE = read_shape(HEADER)
REFERENCE = Settings(
    context=262_144, ubatch=256, cache_k="q4_0", cache_v="q4_0", speculation="draft-mtp", n_max=8, parallel=1
)
WORK = work_of(HEADER, SHAPE, REFERENCE)
PLAIN = replace(REFERENCE, speculation=None, n_max=0)


def test_the_work_of_the_reference_is_what_its_tensors_say() -> None:
    weights = sum(part.weights for part in (*WORK.dense.values(), *WORK.output.values()))
    assert weights == pytest.approx(25.6e9, rel=0.05)
    stored = (big_models.REFERENCE_TENSORS_MIB - big_models.REFERENCE_EMBEDDING_MIB) * big_models.MIB
    drafting = sum(part.size for part in WORK.draft.values())
    dense = sum(part.size for part in (*WORK.dense.values(), *WORK.output.values()))
    assert dense + drafting == pytest.approx(stored, rel=1e-3)
    assert WORK.caches[0].row == 16 * 2 * 1024 * 18 / 32
    assert WORK.caches[0].flops == 4 * 16 * 24 * 256
    assert WORK.state == pytest.approx(149.625 * big_models.MIB)
    assert WORK.layers == 64
    assert work_of(HEADER, SHAPE, PLAIN).draft == {}


def test_what_lies_in_ram_makes_no_prediction_but_still_a_bound() -> None:
    half = replace(PLAIN, gpu_layers=20)
    work = work_of(HEADER, SHAPE, half)
    assert work.elsewhere > 5e9
    assert predict(work, RATES, half, 8192) is None
    assert limits(work, cards()[SFF], half).decode_tok_s > limits(WORK, cards()[SFF], PLAIN).decode_tok_s


def test_of_experts_a_pass_reads_those_that_its_tokens_use() -> None:
    work = Work(dense={}, layers=1, output={}, experts={"k": WORK.dense["fp4"]}, expert_share=8 / 128)
    assert work.experts_touched(1) == pytest.approx(8 / 128)
    assert work.read(1) == pytest.approx(WORK.dense["fp4"].size / 16)
    assert 3.5 < work.read(4) / work.read(1) < 4
    assert work.experts_touched(512) == pytest.approx(1.0)
    assert work.flops() == pytest.approx(2 * WORK.dense["fp4"].weights / 16)
    assert pass_seconds(work, RATES) < pass_seconds(work, RATES, width=4) < pass_seconds(work, RATES, width=512)


def test_tiles_are_computed_whole() -> None:
    assert [columns(width) for width in (1, 8, 9, 17, 100, 128, 129, 512)] == [8, 8, 16, 32, 128, 128, 256, 512]
    assert pass_seconds(WORK, RATES, width=9, outputs=1) == pytest.approx(
        pass_seconds(WORK, RATES, width=16, outputs=1), rel=1e-3
    )


def test_a_tile_is_mostly_empty_where_experts_share_the_tokens() -> None:
    experts = Work(dense={}, layers=1, output={}, experts={"k": WORK.dense["fp4"]}, expert_share=8 / 128)
    dense = replace(experts, dense={"k": WORK.dense["fp4"]}, experts={}, expert_share=1.0)
    few = pass_seconds(experts, RATES, width=128) / pass_seconds(dense, RATES, width=128)
    many = pass_seconds(experts, RATES, width=4096) / pass_seconds(dense, RATES, width=4096)
    assert few > 0.9
    assert many < 0.1


def test_the_published_depths_of_drafts_come_out_in_their_order() -> None:
    """4 to 7 are slower than 3, and 8 is the peak: from 9 tokens on, the tile kernel multiplies."""
    found = sweep(WORK, RATES, acceptance=0.4833, at=8)
    assert max(found, key=found.__getitem__) == 8
    assert all(found[n_max] < found[3] for n_max in (4, 5, 6, 7))
    assert list(found) == list(range(9))
    assert found[8] == pytest.approx(49.31, rel=0.06)


def test_a_pass_takes_longer_the_wider_it_is_and_the_fuller_the_window() -> None:
    narrow = [pass_seconds(WORK, RATES, width=width) for width in range(1, VECTOR_WIDTH + 1)]
    assert narrow == sorted(narrow)
    wide = [pass_seconds(WORK, RATES, width=width) for width in (9, 64, 256, 512)]
    assert wide == sorted(wide)
    assert wide[0] < narrow[-1]


@given(depth=st.integers(0, 262_144), more=st.integers(1, 100_000), n_max=st.integers(0, 8))
def test_a_fuller_window_is_never_faster(depth: int, more: int, n_max: int) -> None:
    here = decode_tok_s(WORK, RATES, n_max=n_max, depth=depth)
    assert decode_tok_s(WORK, RATES, n_max=n_max, depth=depth + more) < here
    assert draft_seconds(WORK, RATES, depth=depth) < draft_seconds(WORK, RATES, depth=depth + more)


@given(name=st.sampled_from(sorted(cards())), n_max=st.integers(0, 12))
def test_no_prediction_passes_a_limit(name: str, n_max: int) -> None:
    settings = replace(REFERENCE, n_max=n_max) if n_max else PLAIN
    work = work_of(HEADER, SHAPE, settings)
    most = limits(work, cards()[name], settings)
    found = predict(work, rates_of(name, cards()[name]), settings, 262_144)
    assert found is not None
    assert found.decode_tok_s < most.decode_tok_s
    assert found.prefill_tok_s is not None
    assert most.prefill_tok_s is not None
    assert found.prefill_tok_s < most.prefill_tok_s
    assert most.tokens == 1 + n_max


def test_a_sliding_window_ends_the_growth() -> None:
    cache = replace(WORK.caches[0], window=1024)
    sliding = replace(WORK, caches=(cache,))
    assert pass_seconds(sliding, RATES, depth=2000) == pass_seconds(sliding, RATES, depth=200_000)


def test_a_card_without_known_arithmetic_gets_no_prefill() -> None:
    unknown = cards()[SFF].model_copy(update={"fp32_tflops": None})
    rates = rates_of(SFF, unknown)
    assert prefill_tok_s(WORK, rates, ubatch=256, prompt=8192) is None
    assert limits(WORK, unknown, REFERENCE).prefill_tok_s is None
    assert decode_tok_s(WORK, rates) > 0


def test_a_cap_slows_what_computes_and_spares_what_reads() -> None:
    card = cards()["rtx-5090"]
    free, capped = rates_of("rtx-5090", card), rates_of("rtx-5090", card, power_limit_w=400)
    assert capped.bandwidth == free.bandwidth
    assert capped.arithmetic < 0.8 * free.arithmetic
    assert rates_of("rtx-5090", card, power_limit_w=600) == free
    plain = decode_tok_s(WORK, capped) / decode_tok_s(WORK, free)
    drafting = decode_tok_s(WORK, capped, n_max=4) / decode_tok_s(WORK, free, n_max=4)
    assert drafting < plain < 1


def test_shares_of_kept_positions_add_up() -> None:
    assert positions(3, 1.0, 0.5) == (1.0, 0.5, 0.25)
    assert acceptance(0) == 0
    assert acceptance(4, first_of(0.6, 4)) == pytest.approx(0.6)
    assert tokens_per_pass(8, 0.4833) == pytest.approx(4.8664)
    assert tokens_per_pass(0) == 1
    for n_max, published in ((1, 0.883), (2, 0.80), (3, 0.73), (4, 0.65), (6, 0.535)):
        assert acceptance(n_max) == pytest.approx(published, abs=0.03)


def test_things_side_by_side_take_about_the_longest() -> None:
    assert together(0.0, 0.0) == 0
    assert together(3.0, 0.0) == pytest.approx(3.0)
    assert 3.0 < together(3.0, 3.0) < 4.0


def test_every_tensor_type_has_one_class() -> None:
    named = [kind for kinds in CLASSES.values() for kind in kinds]
    assert len(named) == len(set(named))
    assert class_of("NVFP4") == "fp4"
    assert class_of("never-heard-of") == "i-low"


def test_a_bound_from_a_size_alone() -> None:
    most = of_bytes(12.2e9, (cards()["rtx-4090"],), PLAIN)
    assert most.passes_s == pytest.approx(82.6, abs=0.1)
    assert most.decode_tok_s == most.passes_s
    assert most.prefill_tok_s is None
    assert of_bytes(12.2e9, (cards()["rtx-4090"],), REFERENCE).decode_tok_s == pytest.approx(9 * most.passes_s)
    assert math.isfinite(most.decode_tok_s)


CARD = cards()["rtx-4090"]
SLOW = CARD.model_copy(update={"bandwidth_gb_s": CARD.bandwidth_gb_s / 2})
LAYERS = replace(PLAIN, cards=2)
TENSORS = replace(PLAIN, cards=2, split_mode="tensor")


def test_layers_are_read_one_card_after_the_other_and_tensors_side_by_side() -> None:
    alone, size = limits(WORK, CARD, PLAIN), WORK.read()
    twice = limits_on(WORK, (CARD, CARD), LAYERS, (size / 2, size / 2))
    assert twice.decode_tok_s == pytest.approx(alone.decode_tok_s)
    assert limits_on(WORK, (CARD, CARD), TENSORS).decode_tok_s == pytest.approx(2 * alone.decode_tok_s)
    # Half of it at full speed and half at half of it takes one and a half times as long.
    mixed = limits_on(WORK, (CARD, SLOW), LAYERS, (size / 2, size / 2))
    assert mixed.decode_tok_s == pytest.approx(alone.decode_tok_s / 1.5)
    assert mixed.passes_s * mixed.pass_bytes == pytest.approx(CARD.bandwidth_gb_s * 1e9 / 1.5)


def test_what_no_card_is_known_to_hold_is_read_by_the_fastest() -> None:
    alone = limits(WORK, CARD, PLAIN)
    assert limits_on(WORK, (SLOW, CARD), LAYERS).decode_tok_s == pytest.approx(alone.decode_tok_s)
    assert of_bytes(12.2e9, (SLOW, CARD), LAYERS) == of_bytes(12.2e9, (CARD,), PLAIN)
    # More held than is read, as where experts rest, never takes longer than reading all of it.
    held = (WORK.read(), WORK.read())
    slowest, fastest = limits(WORK, SLOW, PLAIN).decode_tok_s, alone.decode_tok_s
    assert slowest < limits_on(WORK, (SLOW, CARD), LAYERS, held).decode_tok_s < fastest


def test_all_cards_read_a_prompt_together_and_an_unknown_one_gives_no_bound() -> None:
    alone = limits(WORK, CARD, PLAIN).prefill_tok_s
    assert alone is not None
    assert limits_on(WORK, (CARD, CARD), LAYERS).prefill_tok_s == pytest.approx(2 * alone)
    unknown = CARD.model_copy(update={"fp32_tflops": None})
    assert limits_on(WORK, (CARD, unknown), LAYERS).prefill_tok_s is None
