"""The memory model against the published figures of the reference stack and of other people's logs.

The figures come from the field (reference stack: the 256K article; cases by number: collected
server logs); the headers are composed from published dimensions.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from llamarig.gguf import Header
from llamarig.memory import Beside, Estimate, Settings, estimate, read_shape
from llamarig.memory.logits import logit_bytes
from tests.support.big_models import (
    MIB,
    REFERENCE_EMBEDDING_MIB,
    REFERENCE_PROJECTOR,
    REFERENCE_TENSORS_MIB,
    header_of,
    keys,
    qwen35_27b,
)

FULL = Settings(
    context=262_144,
    batch=512,
    ubatch=256,
    cache_k="q4_0",
    cache_v="q4_0",
    speculation="draft-mtp",
    n_max=8,
    ngram_default=True,
    checkpoints=4,
)
"""The reference stack as its model card gives it."""


@pytest.fixture(scope="module")
def header() -> Header:
    return header_of(qwen35_27b())


def plain(header: Header, context: int, **changes: Any) -> Estimate:
    return estimate(header, Settings(context=context, **changes))


def test_the_full_window_takes_the_published_23952_mib(header: Header) -> None:
    found = estimate(header, FULL)
    device = {term: round(mib, 2) for term, mib in found.device.items()}
    assert device["weights"] + device["draft-weights"] == pytest.approx(REFERENCE_TENSORS_MIB - REFERENCE_EMBEDDING_MIB)
    assert device["kv-cache"] == 4608.0
    assert device["recurrent-state"] == 1346.62
    assert device["draft-kv-cache"] == 1024.0
    assert device["compute"] == 1192.27
    assert device["draft-compute"] == 162.01
    assert found.device_mib == pytest.approx(23_952.0, abs=0.1)


@pytest.mark.parametrize(("n_max", "published"), [(3, 18_352), (4, 18_502), (8, 19_100)])
def test_draft_depths_at_the_40k_window(header: Header, n_max: int, published: int) -> None:
    found = estimate(header, replace(FULL, context=40_960, n_max=n_max), Beside(projector_size=REFERENCE_PROJECTOR))
    assert found.device_mib == pytest.approx(published, rel=0.002)


def test_logged_buffers_of_an_f16_window(header: Header) -> None:
    short = plain(header, 16_384)
    assert round(short.device["compute"], 2) == 138.02
    assert round(short.device["recurrent-state"], 2) == 149.62
    long = plain(header, 91_136, speculation="draft-mtp", n_max=2)
    assert long.device["compute"] == pytest.approx(211.65, rel=0.005)
    assert round(long.device["draft-compute"], 2) == 157.02
    assert round(long.device["recurrent-state"], 2) == 448.88


def test_what_follows_from_the_reference(header: Header) -> None:
    whole = estimate(header, FULL).device_mib
    quantised = estimate(header, replace(FULL, draft_k="q4_0", draft_v="q4_0")).device_mib
    # 1,024 staged less 736 of cache, and since the rotation one more query and two small matrices.
    assert quantised - whole == pytest.approx(1024 - 736 + 6 + (256 * 256 + 64 * 64) * 4 / MIB)
    eight = replace(FULL, cache_k="q8_0", cache_v="q8_0", n_max=3)
    assert estimate(header, eight).device_mib == pytest.approx(27_300, abs=1)
    slots = replace(FULL, parallel=4, kv_unified=True)
    assert estimate(header, slots).device_mib == pytest.approx(27_992, abs=1)


def test_split_slots_share_the_mask(header: Header) -> None:
    """Without a unified cache the mask is as wide as one slot's window: 96 MiB less in each of two contexts."""
    unified = estimate(header, replace(FULL, parallel=4, kv_unified=True)).device_mib
    assert unified - estimate(header, replace(FULL, parallel=4)).device_mib == pytest.approx(192.0)


def test_without_rotation_the_query_is_held_once_less(header: Header) -> None:
    less = estimate(header, replace(FULL, attention_rotation=False))
    assert round(less.device["compute"], 2) == 1186.01


@pytest.mark.parametrize(
    ("settings", "term", "logged"),
    [
        (Settings(context=32_768, ubatch=128), "compute", 38.5),  # case 5
        (Settings(context=200_704, cache_k="q8_0", cache_v="q8_0"), "compute", 1060.28),  # case 75: 1060
        (Settings(context=200_704, cache_k="q8_0", cache_v="q8_0"), "kv-cache", 6664.0),  # case 75
        (Settings(context=32_768, cache_k="q4_0", cache_v="q4_0", ubatch=256), "kv-cache", 576.0),  # case 53
        (Settings(context=16_384, speculation="dflash", n_max=4), "recurrent-state", 748.12),  # case 55
        (Settings(context=16_384, speculation="dflash", n_max=3), "recurrent-state", 598.5),  # case 57
        (Settings(context=200_192, cache_k="q8_0", cache_v="q8_0"), "kv-cache", 6647.0),  # case 3
        (Settings(context=32_768, speculation="draft-mtp", n_max=3), "draft-compute", 130.02),  # case 93
    ],
)
def test_logged_terms_of_the_27b_model(header: Header, settings: Settings, term: str, logged: float) -> None:
    assert estimate(header, settings).device[term] == pytest.approx(logged, abs=0.03)


def test_host_compute_beside_a_card(header: Header) -> None:
    settings = Settings(context=32_768, ubatch=128)  # case 5: 13.00
    found = estimate(header, settings).host["compute"] - logit_bytes(read_shape(header), settings) / MIB
    assert found == pytest.approx(13.0, abs=0.01)


def test_host_ram_of_the_reference(header: Header) -> None:
    found = estimate(header, FULL)
    assert round(found.host["weights"], 1) == 994.6
    assert round(found.host_detail["checkpoints"], 1) == round(4 * 149.625, 1)
    assert found.host_detail["base"] == 1024.0


def test_weights_without_speculation_leave_the_mtp_layer_out(header: Header) -> None:
    with_head = plain(header, 8192, speculation="draft-mtp", n_max=1)
    without = plain(header, 8192)
    assert without.device["weights"] == with_head.device["weights"]
    assert "draft-weights" in with_head.device
    assert not {"draft-weights", "draft-kv-cache", "draft-compute"} & without.device.keys()


def test_n_gram_drafts_raise_no_snapshots(header: Header) -> None:
    plainly = plain(header, 8192)
    with_ngrams = plain(header, 8192, speculation="ngram-mod", n_max=64)
    assert with_ngrams.device["recurrent-state"] == plainly.device["recurrent-state"]


GEMMA3_27B = keys(
    "gemma3",
    {
        "block_count": 62,
        "embedding_length": 5376,
        "feed_forward_length": 21_504,
        "attention.head_count": 32,
        "attention.head_count_kv": 16,
        "attention.key_length": 128,
        "attention.value_length": 128,
        "attention.sliding_window": 1024,
        "context_length": 131_072,
    },
)
GPT_OSS_20B = keys(
    "gpt-oss",
    {
        "block_count": 24,
        "embedding_length": 2880,
        "feed_forward_length": 2880,
        "attention.head_count": 64,
        "attention.head_count_kv": 8,
        "attention.key_length": 64,
        "attention.value_length": 64,
        "attention.sliding_window": 128,
    },
)
QWEN35MOE_35B = keys(
    "qwen35moe",
    {
        "block_count": 40,
        "embedding_length": 2048,
        "attention.head_count": 16,
        "attention.head_count_kv": 2,
        "attention.key_length": 256,
        "attention.value_length": 256,
        "ssm.conv_kernel": 4,
        "ssm.inner_size": 4096,
        "ssm.state_size": 128,
        "ssm.group_count": 16,
        "ssm.time_step_rank": 32,
        "expert_used_count": 8,
        "expert_feed_forward_length": 512,
    },
)
QWEN3NEXT_80B = keys(
    "qwen3next",
    {
        "block_count": 48,
        "embedding_length": 2048,
        "attention.head_count": 16,
        "attention.head_count_kv": 2,
        "attention.key_length": 256,
        "attention.value_length": 256,
        "ssm.conv_kernel": 4,
        "ssm.inner_size": 4096,
        "ssm.state_size": 128,
        "ssm.group_count": 16,
        "ssm.time_step_rank": 32,
    },
)
QWEN3_4B = keys(
    "qwen3",
    {
        "block_count": 36,
        "embedding_length": 2560,
        "feed_forward_length": 9728,
        "attention.head_count": 32,
        "attention.head_count_kv": 8,
        "attention.key_length": 128,
        "attention.value_length": 128,
    },
)
LFM2_350M = keys(
    "lfm2",
    {
        "block_count": 16,
        "embedding_length": 1024,
        "feed_forward_length": 4608,
        "attention.head_count": 16,
        "attention.head_count_kv": [0, 0, 8, 0, 0, 8, 0, 0, 8, 0, 8, 0, 8, 0, 8, 0],
        "shortconv.l_cache": 3,
    },
)
QWEN25_7B = keys(
    "qwen2",
    {
        "block_count": 28,
        "embedding_length": 3584,
        "feed_forward_length": 18_944,
        "attention.head_count": 28,
        "attention.head_count_kv": 4,
    },
)


@pytest.mark.parametrize(
    ("composed", "settings", "kv", "state"),
    [
        (GEMMA3_27B, Settings(context=32_768, ubatch=2048), 3808.0, 0.0),  # case 125
        (GPT_OSS_20B, Settings(context=131_072), 3072 + 18.0, 0.0),  # case 33
        (GPT_OSS_20B, Settings(context=131_072, ubatch=2048), 3072 + 54.0, 0.0),  # case 33
        (QWEN35MOE_35B, Settings(context=32_768), 640.0, 62.8125),  # case 17
        (QWEN3NEXT_80B, Settings(context=4096, parallel=4, kv_unified=True), 96.0, 301.5),  # case 23
        (QWEN3_4B, Settings(context=8192), 1152.0, 0.0),  # case 13
        (QWEN25_7B, Settings(context=8192, cache_k="q4_0", cache_v="q4_0"), 126.0, 0.0),  # case 41
        (LFM2_350M, Settings(context=2048), 24.0, 0.078125),  # case 111: 24, to the MiB
    ],
)
def test_logged_caches_of_other_families(composed: Any, settings: Settings, kv: float, state: float) -> None:
    found = estimate(header_of(composed), settings)
    assert found.known
    assert found.device["kv-cache"] == pytest.approx(kv)
    assert found.device.get("recurrent-state", 0.0) == pytest.approx(state)


def test_qwen3next_keeps_no_snapshots() -> None:
    composed = header_of(QWEN3NEXT_80B)
    one = estimate(composed, Settings(context=4096))
    drafting = estimate(composed, Settings(context=4096, speculation="dflash", n_max=8))
    assert drafting.device["recurrent-state"] == one.device["recurrent-state"] == pytest.approx(75.375)
