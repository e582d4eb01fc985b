"""The bound for graphs that are not known lies above every graph that is."""

from __future__ import annotations

import random

import pytest

from llamarig.memory import Settings, read_shape
from llamarig.memory.compute import compute_bytes, per_layer_bytes
from llamarig.memory.draft_compute import draft_compute_bytes
from llamarig.memory.engines import ERAS
from llamarig.memory.graph.families import BUILDERS
from llamarig.memory.graph.reserve import reserve, reserve_head
from llamarig.memory.placement import buffers
from llamarig.memory.placement.buffers import target_buffers
from llamarig.memory.window import cut
from tests.support import models
from tests.support.big_models import header_of, keys, qwen35_27b

KNOWN = [name for name, model in models.MODELS.items() if model.architecture in BUILDERS]


def drawn(dice: random.Random, blocks: int) -> Settings:
    flash = dice.random() < 0.7
    kind = dice.choice(["f16", "f16", "q8_0", "q4_0", "bf16", "f32"])
    cards = dice.choice([1, 1, 2])
    return Settings(
        context=dice.choice([2048, 8192, 32_768, 131_072]),
        parallel=dice.choice([1, 1, 2, 4]),
        kv_unified=dice.random() < 0.5,
        ubatch=dice.choice([64, 128, 256, 512, 1024, 2048]),
        cache_k="f16" if not flash else kind,
        cache_v="f16" if not flash else kind,
        flash_attention=flash,
        backend=dice.choice(["cpu", "cuda", "cuda"]),
        cards=cards,
        gpu_layers=dice.choice([None, None, blocks // 2, blocks]),
        era=dice.choice(ERAS),
    )


@pytest.mark.parametrize("name", KNOWN)
def test_it_is_never_below_a_graph_that_is_known(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    head = models.header(name)
    shape = read_shape(head)
    monkeypatch.setattr(buffers, "is_known", lambda _: False)
    seed = f"bound of {name}"
    dice = random.Random(seed)
    for _ in range(8):
        asked = drawn(dice, len(shape.layers))
        window = cut(asked)
        exact, bound = reserve(head, shape, asked, window), target_buffers(head, shape, asked, window)
        places = [(bound.host, exact.host), *zip(bound.cards, exact.cards, strict=True)]
        assert all(above >= found for above, found in places), (seed, asked, places)


def test_it_is_never_below_for_an_mtp_head() -> None:
    head = header_of(qwen35_27b())
    shape = read_shape(head)
    for context, kind in ((4096, "f16"), (91_136, "f16"), (262_144, "q4_0")):
        asked = Settings(context=context, speculation="draft-mtp", n_max=3, draft_k=kind, draft_v=kind)
        window = cut(asked)
        exact = reserve_head(head, shape, asked, window)
        assert draft_compute_bytes(head, shape, asked, window) >= exact.cards[0]


def test_a_header_without_tensors_is_bounded_by_its_keys() -> None:
    values = {"block_count": 8, "embedding_length": 512, "feed_forward_length": 2048, "attention.head_count": 8}
    head = header_of(keys("unheard-of", {**values, "context_length": 8192, "vocab_size": 1000}))
    shape = read_shape(head)
    asked = Settings(context=4096)
    found = compute_bytes(head, shape, asked, cut(asked))
    assert found > 512 * 4 * (2 * 2048 + 4 * 512)
    assert per_layer_bytes(head, asked, cut(asked)) == 0


def test_without_an_mtp_head_nothing_is_drafted() -> None:
    head = models.header("llama-3.1-8b")
    asked = Settings(context=4096)
    assert draft_compute_bytes(head, read_shape(head), asked, cut(asked)) == 0
