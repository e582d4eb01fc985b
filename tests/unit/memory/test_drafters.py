"""Drafters that read the target's own rows.

Figures: buffer lines of a server of build 10454 on the CPU backend, which ran the tiny llama of
``tests.support.tiny_models`` with drafters of these dimensions.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from llamarig.errors import RigError
from llamarig.gguf import Header
from llamarig.memory import Beside, Settings, estimate, read_shape
from llamarig.memory.draft_outputs import reader_output_bytes
from llamarig.memory.engines import JUNE_2026, SEPTEMBER_2026
from tests.support import gguf_bytes as raw
from tests.support.big_models import MIB, header_of

WIDTH = 320


def plain(architecture: str, blocks: int, ff: int = 384, vocabulary: int = WIDTH) -> raw.Composed:
    composed = raw.Composed().add("general.architecture", raw.STRING, architecture)
    for key, value in {
        "block_count": blocks,
        "embedding_length": WIDTH,
        "feed_forward_length": ff,
        "attention.head_count": 4,
        "attention.head_count_kv": 2,
        "attention.key_length": 64,
        "attention.value_length": 64,
    }.items():
        composed.add(f"{architecture}.{key}", raw.U32, value)
    composed.pairs.append(raw.array("tokenizer.ggml.tokens", raw.STRING, ["x"] * vocabulary))
    return composed


def feed_forward(composed: raw.Composed, block: int, ff: int = 384) -> None:
    composed.tensor(f"blk.{block}.ffn_gate.weight", "F16", WIDTH, ff)
    composed.tensor(f"blk.{block}.ffn_up.weight", "F16", WIDTH, ff)
    composed.tensor(f"blk.{block}.ffn_down.weight", "F16", ff, WIDTH)


def target() -> Header:
    composed = plain("llama", 4).tensor("token_embd.weight", "F16", WIDTH, WIDTH)
    for block in range(4):
        feed_forward(composed, block)
    return header_of(composed.tensor("output.weight", "F16", WIDTH, WIDTH))


def eagle3(*, ff: int = 384, small: int = 0, own: bool = False, vocabulary: int = WIDTH) -> Header:
    composed = plain("eagle3", 1, ff, vocabulary)
    composed.pairs.append(raw.array("eagle3.target_layers", raw.I32, [1, 2, 3]))
    if own:
        composed.tensor("output.weight", "F16", WIDTH, small or WIDTH)
    if small:
        composed.tensor("d2t", "I64", small)
    for name, rows, columns in (("attn_q", 256, 640), ("attn_k", 128, 640), ("attn_v", 128, 640)):
        composed.tensor(f"blk.0.{name}.weight", "F16", columns, rows)
    composed.tensor("blk.0.attn_output.weight", "F16", 256, WIDTH)
    feed_forward(composed, 0, ff)
    return header_of(composed)


def dflash(blocks: int, window: int = 0, vocabulary: int = WIDTH) -> Header:
    composed = plain("dflash", blocks, vocabulary=vocabulary)
    composed.pairs.append(raw.array("dflash.target_layers", raw.I32, [1, 2, 3]))
    if window:
        composed.add("dflash.attention.sliding_window", raw.U32, window)
        pattern = [block % 2 == 0 for block in range(blocks)]
        composed.pairs.append(raw.array("dflash.attention.sliding_window_pattern", raw.BOOL, pattern))
    for block in range(blocks):
        feed_forward(composed, block)
    return header_of(composed)


SHORT = Settings(context=2048, backend="cpu", speculation="eagle3", n_max=4)
LONG = replace(SHORT, context=8192, ubatch=256, parallel=2)
CASES = {
    "eagle3": (eagle3(), (1.0, 4.0), (5.14, 3.57)),
    "eagle3 with a vocabulary of its own": (eagle3(small=160, own=True), (1.0, 4.0), (5.76, 3.88)),
    "eagle3, wide": (eagle3(ff=1500, own=True), (1.0, 4.0), (10.04, 5.02)),
    "dflash": (dflash(3), (3.0, 12.0), (6.01, 4.01)),
    "dflash, sliding": (dflash(4, 256), (2.75, 9.0), (6.77, 4.26)),
}


def rows_mib(drafter: Header, settings: Settings) -> float:
    """MiB of the rows that the host keeps for a drafter, which a server's first lines do not show."""
    return reader_output_bytes(drafter, read_shape(drafter), read_shape(target()), settings) / MIB


@pytest.mark.parametrize("name", CASES)
def test_a_drafters_buffers_are_the_engines(name: str) -> None:
    drafter, caches, buffers = CASES[name]
    for settings, cache, compute in zip((SHORT, LONG), caches, buffers, strict=True):
        found = estimate(target(), settings, Beside(drafter=drafter)).host
        assert found["draft-kv-cache"] == cache
        assert found["draft-compute"] - rows_mib(drafter, settings) == pytest.approx(compute, abs=0.01)


@pytest.mark.parametrize(
    ("settings", "before", "after"), [(SHORT, 6.64, 7.89), (replace(LONG, parallel=1), 6.32, 6.94)]
)
def test_rows_for_the_drafter_are_kept_from_the_first_request_on(
    settings: Settings, before: float, after: float
) -> None:
    """Three rows at most are kept; the server's buffer grew by two and by one, as some lay in it anyway."""
    alone = estimate(target(), replace(settings, speculation=None, n_max=0)).host["compute"]
    beside = estimate(target(), settings, Beside(drafter=eagle3())).host["compute"]
    row = settings.ubatch * WIDTH * 4 / MIB
    assert before - 0.01 <= alone <= before + 0.1
    assert after - 0.01 <= beside <= after + 2 * row + 0.1


VOCABULARY = 60_000
SEEN = {
    "eagle3": (eagle3(vocabulary=VOCABULARY), 118.44, 235.85),
    "dflash": (dflash(3, vocabulary=VOCABULARY), 117.81, 235.23),
}


@pytest.mark.parametrize("name", SEEN)
def test_a_drafter_chooses_from_a_copy_of_all_logits(name: str) -> None:
    """As a server of build 10454 printed at first, and once its drafter had samplers: vocabulary x 513 x 4 bytes more.

    The same server's answers came to 492,177,408 bytes: 512 rows of 4 x 60,000 + 320 + 1 numbers.
    """
    drafter, before, after = SEEN[name]
    for era, mib in ((replace(JUNE_2026, draft_sampling=False), before), (JUNE_2026, after)):
        settings = replace(SHORT, context=8192, speculation=name, era=era)
        found = estimate(target(), settings, Beside(drafter=drafter)).host["draft-compute"]
        first = VOCABULARY * 4 / MIB
        assert found - rows_mib(drafter, settings) - first == pytest.approx(mib, abs=0.01)
    answers = 492_177_408 // 4 - VOCABULARY
    read = 3 * 2048 * WIDTH
    gathered = read + 3 * 2048 * WIDTH if name == "eagle3" else 2 * 3 * 512 * WIDTH + 2048 * WIDTH
    assert rows_mib(drafter, settings) * MIB == 4 * (answers + read + gathered)


def test_a_drafter_that_encodes_no_more_answers_for_its_draft_alone() -> None:
    drafter = dflash(3, vocabulary=VOCABULARY)
    newer = replace(SHORT, speculation="dflash", parallel=2, era=SEPTEMBER_2026)
    older = replace(newer, era=JUNE_2026)
    each = 4 * (4 * VOCABULARY + WIDTH + 1)
    more = (rows_mib(drafter, older) - rows_mib(drafter, newer)) * MIB
    assert more == pytest.approx(each * (512 - 2 * (4 + 1)))
    assert rows_mib(target(), replace(newer, speculation="draft-model")) == 0


def test_rows_are_kept_where_they_are_computed() -> None:
    two = replace(SHORT, backend="cuda", cards=2, tensor_split=(2.0, 3.0), pipeline=False)
    alone, beside = estimate(target(), two), estimate(target(), two, Beside(drafter=eagle3(own=True), draft_card=1))
    more = [after["compute"] - before["compute"] for before, after in zip(alone.devices, beside.devices, strict=True)]
    row = 512 * WIDTH * 4 / MIB
    assert more == pytest.approx([2 * row, row])


def test_a_plain_drafter_keeps_no_rows() -> None:
    drafting = replace(SHORT, speculation="draft-model")
    assert (
        estimate(target(), drafting, Beside(drafter=target())).host["compute"]
        == estimate(target(), drafting).host["compute"]
    )


def test_a_drafter_without_an_output_matrix_is_on_the_card_that_has_it() -> None:
    two = replace(SHORT, backend="cuda", cards=2)
    with pytest.raises(RigError, match="no output matrix"):
        estimate(target(), two, Beside(drafter=eagle3(), draft_card=0))
    with pytest.raises(RigError, match="no output matrix"):
        estimate(target(), replace(two, split_mode="tensor"), Beside(drafter=eagle3(), draft_card=0))
    with pytest.raises(RigError, match="no output matrix"):
        estimate(target(), replace(two, cards=1), Beside(drafter=dflash(3), draft_card=1))
    assert estimate(target(), two, Beside(drafter=eagle3(), draft_card=1)).devices[1]["draft-compute"] > 0
    assert estimate(target(), two, Beside(drafter=eagle3(own=True), draft_card=0)).devices[0]["draft-compute"] > 0
    in_ram = replace(two, cards=1, gpu_layers=0)
    assert estimate(target(), in_ram, Beside(drafter=dflash(3), draft_card=1)).devices[1]["draft-compute"] > 0
