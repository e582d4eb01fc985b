"""Bytes of caches and states that the models of the fit tool's comparison do not have, by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llamarig.errors import RigError
from llamarig.memory import Settings, read_shape
from llamarig.memory.draft_kv import draft_kv_bytes
from llamarig.memory.draft_outputs import draft_output_bytes
from llamarig.memory.engines import OLDER
from llamarig.memory.kv import kv_bytes
from llamarig.memory.recurrent import recurrent_bytes
from llamarig.memory.window import cut
from tests.unit.memory.layouts.test_layers import model

CPU = Settings(context=4096, backend="cpu", ubatch=256)
MTP = replace(CPU, speculation="draft-mtp", n_max=3)
F16 = 2
CELL = 2 * (2 * 64) * F16
"""A row of K and one of V in f16 of a model of :func:`model`."""


def test_rows_of_an_mtp_layer_stand_in_the_targets_cache_where_no_filter_keeps_them_out() -> None:
    for arch, layers in (("glm4moe", 8), ("hy_v3", 7), ("qwen3next", 1)):
        shape = read_shape(model(arch, nextn_predict_layers=1))
        assert kv_bytes(shape, CPU, cut(CPU)).host == layers * 4096 * CELL, arch


def test_a_draft_context_keeps_the_mtp_layers_or_everything_once_more() -> None:
    for arch, layers in (("hy_v3", 1), ("qwen35", 1), ("cohere2moe", 8)):
        shape = read_shape(model(arch, nextn_predict_layers=1))
        assert draft_kv_bytes(shape, MTP, cut(MTP)).host == layers * 4096 * CELL, arch
        assert draft_kv_bytes(shape, CPU, cut(CPU)).host == 0


def test_an_mtp_layer_that_slides_keeps_its_window_in_the_draft_context() -> None:
    pattern = [False] * 7 + [True]
    shape = read_shape(
        model(
            "step35", nextn_predict_layers=1, attention__sliding_window=128, attention__sliding_window_pattern=pattern
        )
    )
    assert draft_kv_bytes(shape, MTP, cut(MTP)).host == 512 * CELL


def test_an_mtp_layer_with_a_feed_forward_part_has_kv_in_the_draft_context_alone() -> None:
    shape = read_shape(
        model(
            "nemotron_h_moe",
            nextn_predict_layers=1,
            attention__head_count_kv=[0, 2] * 4,
            feed_forward_length=[0] * 7 + [9],
        )
    )
    assert kv_bytes(shape, CPU, cut(CPU)).host == 3 * 4096 * CELL
    assert draft_kv_bytes(shape, MTP, cut(MTP)).host == 4096 * CELL


def test_sparse_attention_keeps_a_key_of_its_indexer() -> None:
    latent = model(
        "glm-dsa",
        attention__indexer__key_length=128,
        attention__indexer__types=[1, 0] * 4,
        attention__head_count_kv=1,
        attention__key_length=96,
        attention__key_length_mla=64,
    )
    assert kv_bytes(read_shape(latent), CPU, cut(CPU)).host == 4096 * F16 * (8 * 96 + 4 * 128)
    other = model("minimax-m3", attention__indexer__key_length=128, leading_dense_block_count=3)
    # The indexer's cache has a row of V of one head, which nothing reads.
    assert kv_bytes(read_shape(other), CPU, cut(CPU)).host == 4096 * (8 * CELL + 5 * F16 * (128 + 64))


def test_deepseek4_keeps_a_window_compressed_keys_and_the_compressors_state() -> None:
    shape = read_shape(
        model(
            "deepseek4",
            attention__head_count_kv=1,
            attention__key_length=128,
            attention__sliding_window=128,
            attention__indexer__key_length=64,
            attention__compress_ratios=[0, 0, 4, 128, 4, 128, 4, 128],
        )
    )
    two = replace(CPU, parallel=2, kv_unified=True)
    window, fine, coarse = 512, 1024, 256
    keys = F16 * (8 * window * 128 + 3 * fine * (128 + 64) + 3 * coarse * 128)
    assert kv_bytes(shape, two, cut(two)).host == 2 * keys
    states = 4 * (3 * 2 * 8 * (2 * 128 + 2 * 64) + 3 * 2 * 128 * 128)
    assert recurrent_bytes(shape, two).host == 2 * states
    drafting = replace(two, speculation="eagle3", n_max=3)
    assert recurrent_bytes(shape, drafting).host == 2 * 4 * states


def test_without_flash_attention_every_row_of_v_is_as_wide_as_the_widest() -> None:
    shape = read_shape(model("deci", attention__head_count_kv=[2, 4] * 4))
    on, off = CPU, replace(CPU, flash_attention=False)
    assert kv_bytes(shape, on, cut(on)).host == 4096 * F16 * 64 * (4 * 2 * 2 + 4 * 2 * 4)
    assert kv_bytes(shape, off, cut(off)).host == 4096 * F16 * 64 * (4 * (2 + 4) + 4 * (4 + 4))


def test_without_flash_attention_a_layer_without_heads_has_rows_of_v_too() -> None:
    shape = read_shape(model("deci", attention__head_count=[4, 0] * 4, attention__head_count_kv=[2, 0] * 4))
    on, off = CPU, replace(CPU, flash_attention=False)
    assert kv_bytes(shape, on, cut(on)).host == 4096 * 4 * CELL
    assert kv_bytes(shape, off, cut(off)).host == 4096 * (4 * CELL + 4 * CELL // 2)


def test_sliding_layers_of_a_unified_cache_hold_the_window_of_every_slot() -> None:
    shape = read_shape(model("gemma3", attention__sliding_window=512))
    unified = replace(CPU, context=16_384, parallel=4, kv_unified=True)
    cells = 7 * (4 * 512 + 256) + 1 * 16_384
    assert kv_bytes(shape, unified, cut(unified)).host == cells * CELL
    split = replace(unified, kv_unified=False)
    assert kv_bytes(shape, split, cut(split)).host == 4 * (7 * 768 + 4096) * CELL


@pytest.mark.parametrize(
    ("keys", "kinds", "words"),
    [
        ({"attention__key_length": 80}, ("q8_0", "f16"), "K heads of 80 elements"),
        ({"attention__value_length": 80}, ("f16", "q4_0"), "V heads of 80 elements"),
        ({}, ("q3_k", "f16"), "is no KV cache type"),
    ],
)
def test_types_that_the_engine_does_not_start_with(keys: dict[str, int], kinds: tuple[str, str], words: str) -> None:
    shape = read_shape(model("llama", **keys))
    wanted = replace(CPU, cache_k=kinds[0], cache_v=kinds[1])
    with pytest.raises(RigError, match=words):
        kv_bytes(shape, wanted, cut(wanted))


@pytest.mark.parametrize("arch", ["deepseek2", "deepseek4"])
def test_latent_attention_has_one_type_for_both(arch: str) -> None:
    header = model(
        arch,
        attention__key_length_mla=64,
        attention__sliding_window=128,
        attention__compress_ratios=[0] * 8,
        attention__indexer__key_length=64,
    )
    wanted = replace(CPU, cache_k="q8_0")
    with pytest.raises(RigError, match="do not go together"):
        kv_bytes(read_shape(header), wanted, cut(wanted))
    same = replace(wanted, cache_v="q8_0")
    assert kv_bytes(read_shape(header), same, cut(same)).host > 0


def test_an_mtp_head_makes_the_host_keep_rows_of_every_token_of_a_batch() -> None:
    shape = read_shape(model("qwen35", nextn_predict_layers=1))
    vocabulary = replace(shape, vocabulary=1000)
    drafting = replace(MTP, parallel=3, batch=2048)
    kept = (1 + 1 + 3) * 2048 * 256
    assert draft_output_bytes(vocabulary, drafting) == 4 * (kept + 3 * (256 + 4 * 1000 + 1))
    assert draft_output_bytes(vocabulary, CPU) == 0
    for unsampled in (replace(drafting, era=OLDER), replace(drafting, backend="cuda", cards=2, split_mode="tensor")):
        assert draft_output_bytes(vocabulary, unsampled) == 4 * (kept + 3 * (256 + 1000))


def test_an_mtp_heads_answers_are_what_a_server_reserves_for_them() -> None:
    """Seen of build 10454 with a model of 60,000 tokens and rows of 320: one, three and eight slots."""
    shape = replace(read_shape(model("qwen35", nextn_predict_layers=1)), vocabulary=60_000, embedding=320)
    for slots, seen in ((1, 961_284), (3, 2_883_852), (8, 7_690_272)):
        assert draft_output_bytes(shape, replace(MTP, batch=0, parallel=slots)) == seen
