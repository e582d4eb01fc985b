"""What must hold for any setting, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llamarig.errors import RigError
from llamarig.gguf import Header
from llamarig.memory import Beside, Estimate, Settings, estimate, read_shape
from llamarig.memory.terms import TERMS
from llamarig.memory.units import KV_TYPES, pad, row_bytes
from llamarig.memory.window import cut
from tests.support import gguf_bytes as raw
from tests.support.big_models import header_of, keys, qwen35_27b

HYBRID = header_of(qwen35_27b(blocks=8))
LLAMA = header_of(
    keys(
        "llama",
        {
            "block_count": 4,
            "embedding_length": 512,
            "feed_forward_length": 1024,
            "attention.head_count": 8,
            "attention.head_count_kv": 4,
        },
    ).tensor("token_embd.weight", "F16", 512, 1000)
)

ANY = st.builds(
    Settings,
    context=st.integers(256, 300_000),
    backend=st.sampled_from(["cuda", "cpu"]),
    parallel=st.integers(1, 16),
    kv_unified=st.booleans(),
    batch=st.integers(32, 4096),
    ubatch=st.integers(32, 4096),
    cache_k=st.sampled_from(KV_TYPES),
    cache_v=st.sampled_from(KV_TYPES),
    speculation=st.sampled_from([None, "draft-mtp", "ngram-mod"]),
    n_max=st.integers(1, 16),
    draft_k=st.sampled_from(KV_TYPES),
    draft_v=st.sampled_from(KV_TYPES),
    checkpoints=st.integers(0, 32),
    cache_ram_mib=st.integers(0, 8192),
)


def everything(found: Estimate) -> float:
    return found.device_mib + found.host_mib


@settings(max_examples=40, deadline=None)
@given(wanted=ANY)
def test_terms_are_known_positive_and_sum_up(wanted: Settings) -> None:
    found = estimate(HYBRID, wanted)
    for place, total in ((found.device, found.device_mib), (found.host, found.host_mib)):
        assert set(place) <= set(TERMS)
        assert all(mib > 0 for mib in place.values())
        assert sum(place.values()) == total
    assert (wanted.backend == "cpu") == (not found.device)


@settings(max_examples=40, deadline=None)
@given(wanted=ANY, more=st.integers(1, 100_000))
def test_more_context_never_takes_less(wanted: Settings, more: int) -> None:
    bigger = replace(wanted, context=wanted.context + more)
    assert everything(estimate(HYBRID, bigger)) >= everything(estimate(HYBRID, wanted))


@settings(max_examples=40, deadline=None)
@given(wanted=ANY, more=st.integers(1, 8))
def test_longer_drafts_never_take_less(wanted: Settings, more: int) -> None:
    deeper = replace(wanted, n_max=wanted.n_max + more)
    assert everything(estimate(HYBRID, deeper)) >= everything(estimate(HYBRID, wanted))


@settings(max_examples=40, deadline=None)
@given(wanted=ANY, more=st.integers(1, 8))
def test_more_slots_of_a_unified_cache_never_take_less(wanted: Settings, more: int) -> None:
    """Here, where each slot has a state; buffers alone may shrink, as a pass is dealt out among the slots."""
    unified = replace(wanted, kv_unified=True)
    several = replace(unified, parallel=wanted.parallel + more)
    assert everything(estimate(HYBRID, several)) >= everything(estimate(HYBRID, unified))


@settings(max_examples=40, deadline=None)
@given(wanted=ANY, more=st.integers(1, 8))
def test_split_slots_hold_the_window_and_pad_each_share(wanted: Settings, more: int) -> None:
    """Each slot's share is padded, so the sum may fall by less than one pad a slot when slots are added."""
    split = replace(wanted, kv_unified=False, parallel=wanted.parallel + more)
    window = cut(split)
    assert pad(split.context) <= window.cells * window.streams < pad(split.context) + 256 * split.parallel
    before, after = (estimate(HYBRID, each) for each in (replace(wanted, kv_unified=False), split))
    for place in ("device", "host"):
        term = "recurrent-state"
        assert getattr(after, place).get(term, 0.0) >= getattr(before, place).get(term, 0.0)


@pytest.mark.parametrize("layers", range(7))
def test_partial_offload_moves_layers_and_loses_none(layers: int) -> None:
    some = estimate(LLAMA, Settings(context=4096, gpu_layers=layers))
    whole = estimate(LLAMA, Settings(context=4096))
    assert some.device.get("kv-cache", 0.0) + some.host.get("kv-cache", 0.0) == whole.device["kv-cache"]
    on_card = max(0, min(layers, 5) - 1)
    assert some.device.get("kv-cache", 0.0) == pytest.approx(whole.device["kv-cache"] * on_card / 4)


def test_a_tied_output_stands_on_the_host_and_again_on_the_card() -> None:
    size = 512 * 1000 * 2 / (1 << 20)
    card = estimate(LLAMA, Settings(context=1024))
    assert card.device["weights"] == pytest.approx(size)
    assert card.host["weights"] == pytest.approx(size)
    assert estimate(LLAMA, Settings(context=1024, backend="cpu")).host["weights"] == pytest.approx(size)


def test_a_drafter_of_its_own_comes_on_top() -> None:
    wanted = Settings(context=8192, speculation="draft-model", n_max=4, draft_k="q8_0", draft_v="q8_0")
    alone, drafting = estimate(HYBRID, wanted), estimate(HYBRID, wanted, Beside(drafter=LLAMA))
    drafter = estimate(LLAMA, Settings(context=8192, cache_k="q8_0", cache_v="q8_0"))
    assert drafting.device["draft-weights"] == drafter.device["weights"]
    assert drafting.device["draft-kv-cache"] == drafter.device["kv-cache"]
    assert drafting.device_mib == pytest.approx(
        alone.device_mib + drafter.device_mib - drafter.device["process"],
    )


def test_flash_attention_off_adds_the_scores() -> None:
    on, off = (estimate(LLAMA, Settings(context=8192, flash_attention=wanted)) for wanted in (True, False))
    assert off.device["compute"] - on.device["compute"] >= 8 * 8192 * 512 * 4 / (1 << 20)


@pytest.mark.parametrize(
    ("context", "parallel", "unified", "cells", "streams"),
    [
        (4096, 1, False, 4096, 1),
        (4097, 1, False, 4352, 1),
        (4096, 3, False, 1536, 3),
        (4096, 3, True, 4096, 1),
        (300, 4, False, 256, 4),
    ],
)
def test_the_window_is_cut_as_the_engine_cuts_it(
    context: int, parallel: int, unified: bool, cells: int, streams: int
) -> None:
    window = cut(Settings(context=context, parallel=parallel, kv_unified=unified))
    assert (window.cells, window.streams) == (cells, streams)


def test_rows_and_padding() -> None:
    assert [row_bytes(kind, 1024) for kind in KV_TYPES] == [4096, 2048, 2048, 1088, 576, 640, 576, 704, 768]
    assert [pad(value) for value in (0, 1, 256, 257)] == [0, 256, 256, 512]
    with pytest.raises(RigError, match="no KV cache type"):
        row_bytes("q6_K", 256)
    with pytest.raises(RigError, match="cannot hold this model's KV rows"):
        row_bytes("q8_0", 80)


def changed(**values: Any) -> Header:
    base = {
        "block_count": 4,
        "embedding_length": 512,
        "feed_forward_length": 1024,
        "attention.head_count": 8,
        "attention.head_count_kv": 4,
    }
    return header_of(keys("llama", {**base, **{key.replace("__", "."): value for key, value in values.items()}}))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"block_count": 0}, "claims 0 layers"),
        ({"block_count": 100_000}, "claims 100000 layers"),
        ({"nextn_predict_layers": 4}, "claims 4 MTP layers of 4"),
        ({"attention__head_count_kv": [4, 4]}, "for 2 layers, and the model has 4"),
        ({"embedding_length": [1, 2, 3, 4]}, "not a whole number"),
    ],
)
def test_headers_that_make_no_sense_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(RigError, match=message):
        read_shape(changed(**values))


def test_a_header_without_an_architecture_is_refused() -> None:
    with pytest.raises(RigError, match=r"no general\.architecture"):
        read_shape(header_of(raw.Composed()))


def test_an_unknown_architecture_is_planned_as_plain_attention_and_says_so() -> None:
    composed = keys("brandnew", {"block_count": 2, "embedding_length": 64, "attention.head_count": 2})
    found = estimate(header_of(composed), Settings(context=1024))
    assert not found.known
    assert found.device["kv-cache"] == 2 * 1024 * 2 * 64 * 2 / (1 << 20)


def test_settings_that_do_not_go_together_are_refused() -> None:
    with pytest.raises(RigError, match="needs an MTP head"):
        estimate(LLAMA, Settings(context=1024, speculation="draft-mtp", n_max=2))
    with pytest.raises(RigError, match="needs flash attention"):
        estimate(LLAMA, Settings(context=1024, cache_v="q8_0", flash_attention=False))
