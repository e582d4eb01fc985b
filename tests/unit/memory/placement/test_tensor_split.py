"""Tensor split: what the engine's Meta device gives to each card."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llamarig.errors import RigError
from llamarig.memory import Settings, estimate, read_shape
from llamarig.memory.placement.buffers import ALLREDUCE_SCRATCH, reduction_bytes
from llamarig.memory.placement.cuts import cut, kv_parts, rotation
from llamarig.memory.placement.tensor_parts import parts_of
from llamarig.memory.window import cut as window_of
from tests.support.big_models import header_of, keys, qwen35_27b

HYBRID = header_of(qwen35_27b(mtp=0))
TWO = Settings(context=8192, cards=2, split_mode="tensor")


def test_what_does_not_divide_into_grains_goes_to_the_last() -> None:
    assert cut(1024, 128, (1.0, 1.0), 0) == (512, 512)
    assert cut(1024, 256, (3.0, 2.0), 0) == (512, 512)
    assert cut(640, 128, (1.0, 1.0), 0) == (256, 384)
    assert cut(640, 128, (1.0, 1.0), 1) == (384, 256)
    assert cut(100, 1, (1.0, 1.0, 2.0), 0) == (25, 25, 50)


def test_the_rest_goes_around_within_layers_of_one_kind() -> None:
    shape = read_shape(HYBRID)
    assert [rotation(shape, block, 2) for block in (0, 1, 2, 4)] == [0, 1, 0, 1]
    assert [rotation(shape, block, 2) for block in (3, 7, 11)] == [0, 1, 0]


def test_whole_kv_heads_go_to_a_card() -> None:
    shape = read_shape(HYBRID)
    assert kv_parts(shape, TWO, 3) == (512, 512)
    assert kv_parts(shape, replace(TWO, tensor_split=(3.0, 1.0)), 3) == (768, 256)
    assert kv_parts(shape, replace(TWO, cards=3, tensor_split=(1.0, 1.0, 1.0)), 3) == (256, 256, 512)


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("blk.3.attn_q.weight", 0.5),
        ("blk.3.attn_k.weight", 0.5),
        ("blk.3.attn_output.weight", 0.5),
        ("blk.0.attn_qkv.weight", 0.5),
        ("blk.0.ssm_out.weight", 0.5),
        ("blk.0.ssm_conv1d.weight", 0.5),
        ("blk.0.ffn_up.weight", 0.5),
        ("blk.0.ffn_down.weight", 0.5),
        ("output.weight", 0.5),
        ("blk.0.attn_norm.weight", 1.0),
        ("output_norm.weight", 1.0),
        ("blk.0.post_attention_norm.weight", 1.0),
    ],
)
def test_a_tensor_is_cut_or_lies_whole_on_both(name: str, part: float) -> None:
    tensor = HYBRID.by_name[name]
    found = parts_of(HYBRID, read_shape(HYBRID), TWO, tensor)
    assert found.cards == (tensor.size * part, tensor.size * part)


def test_uneven_shares_keep_the_heads_of_a_state_together() -> None:
    shape = read_shape(HYBRID)
    settings = replace(TWO, tensor_split=(5.0, 7.0))
    tensor = HYBRID.by_name["blk.0.ssm_out.weight"]
    # 16 key heads, 5/12 of them are 6 whole ones; three values a key.
    assert parts_of(HYBRID, shape, settings, tensor).cards[0] == tensor.size * 6 // 16


def test_caches_of_a_card_as_published() -> None:
    """A 35B-A3B over two RTX 3090 with two slots and an MTP draft of 3: 571 MiB of context on a card, whole MiB."""
    model = header_of(
        keys(
            "qwen35moe",
            {
                "block_count": 41,
                "nextn_predict_layers": 1,
                "embedding_length": 2048,
                "attention.head_count": 16,
                "attention.head_count_kv": 2,
                "attention.key_length": 256,
                "attention.value_length": 256,
                "ssm.conv_kernel": 4,
                "ssm.inner_size": 4096,
                "ssm.state_size": 128,
                "ssm.time_step_rank": 32,
                "ssm.group_count": 16,
                "full_attention_interval": 4,
                "expert_count": 256,
                "expert_used_count": 8,
                "expert_feed_forward_length": 512,
            },
        )
    )
    settings = replace(TWO, context=32_768, parallel=2, kv_unified=True, speculation="draft-mtp", n_max=3)
    found = estimate(model, settings)
    for terms in found.devices:
        assert int(terms["kv-cache"] + terms["recurrent-state"]) == 571
    assert found.device["draft-kv-cache"] == 64.0


def test_every_card_has_the_buffer_of_one_alone_and_what_partial_sums_need() -> None:
    alone = estimate(HYBRID, replace(TWO, cards=1)).devices[0]["compute"]
    shape = read_shape(HYBRID)
    more = reduction_bytes(shape, TWO, window_of(TWO)).cards
    assert more == (512 * 5120 * 4 + ALLREDUCE_SCRATCH,) * 2
    for terms in estimate(HYBRID, TWO).devices:
        assert terms["compute"] == pytest.approx(alone + more[0] / (1 << 20))
    assert reduction_bytes(shape, replace(TWO, split_mode="layer"), window_of(TWO)).cards == ()
    three = replace(TWO, cards=3)
    assert reduction_bytes(shape, three, window_of(three)).cards == (2 * 512 * 5120 * 4,) * 3


def test_a_tied_embedding_lies_whole_on_every_card() -> None:
    composed = keys("llama", {"block_count": 2, "embedding_length": 256, "attention.head_count": 2})
    tied = header_of(composed.tensor("token_embd.weight", "F16", 256, 4096))
    embedding = 256 * 4096 * 2 / (1 << 20)
    found = estimate(tied, TWO)
    assert [terms["weights"] for terms in found.devices] == [embedding, embedding]
    assert found.host["weights"] == embedding


def test_an_architecture_that_the_engine_does_not_split_is_refused() -> None:
    composed = keys("lfm2", {"block_count": 2, "embedding_length": 256, "attention.head_count": 2})
    with pytest.raises(RigError, match="tensor"):
        estimate(header_of(composed), TWO)
