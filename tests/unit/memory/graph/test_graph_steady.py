"""Leaving out layers that repeat others changes no figure."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

import pytest

from llamarig.memory import read_shape
from llamarig.memory.graph.builder import Placement
from llamarig.memory.graph.families import BUILDERS
from llamarig.memory.graph.reserve import kinds_of, reserve
from llamarig.memory.graph.steady import Selection
from llamarig.memory.window import cut
from tests.support import models
from tests.support.big_models import header_of, keys
from tests.support.compute_lines import header, settings

SETTINGS = [
    settings((32_768, 512, 1, "f16", "f16", True)),
    settings((8192, 128, 2, "f16", "f16", False), backend="cpu"),
    settings((65_536, 512, 1, "q4_0", "q4_0", True), cards=2),
    settings((32_768, 512, 1, "q8_0", "q8_0", True), gpu_layers=12),
    settings((16_384, 256, 2, "f16", "f16", True), cpu_experts=9, cards=2),
    settings((32_768, 512, 1, "q8_0", "f16", True), overrides=((r"blk\.\d*[02468]\.attn_(q|k)", None),)),
    settings((8192, 64, 1, "f16", "f16", False), cpu_experts=999, op_offload=False),
]


SAME: dict[int, Hashable] = dict.fromkeys(range(100), "the same")
"""States by layer."""


def test_turns_of_a_pattern_are_left_out_once_they_find_the_same_state() -> None:
    for kinds, most in (("a" * 80, 8), ("LLLF" * 12, 16), ("aaa" + "b" * 60, 12), ("a" * 30 + "b" * 30, 12)):
        selection = Selection(kinds)
        assert len(selection.layers) <= most
        assert selection.has_settled(SAME)


def test_more_are_simulated_until_the_state_repeats() -> None:
    selection = Selection("a" * 80)
    found = [len(selection.layers)]
    while not selection.has_settled({number: min(number, 20) for number in range(80)}):
        found.append(len(selection.layers))
    assert found == sorted(found)
    assert 20 < found[-1] < 80


def test_all_are_simulated_when_it_never_does() -> None:
    selection = Selection("LLLF" * 12)
    while not selection.has_settled({number: number for number in range(48)}):
        pass
    assert selection.whole
    assert selection.layers == list(range(48))


def test_where_few_could_be_left_out_all_are_simulated_at_once() -> None:
    assert Selection("a" * 10 + "bcdefghijklmnopqrstuvwxyz").whole
    assert not Selection("a" * 40 + "bcdefghijk").whole


def test_what_is_left_out_is_an_even_number_of_turns() -> None:
    selection = Selection("LLLF" * 12)
    assert (48 - len(selection.layers)) % 8 == 0


def test_layers_in_ram_are_alike_when_their_weights_are_as_big() -> None:
    head = header("qwen3moe-30b-a3b")
    shape = read_shape(head)
    on_cards = Placement(cards=1, blocks=(0,) * (len(shape.layers) + 1))
    halved = replace(on_cards, by_name=lambda name: int(int(name.split(".")[1]) < 20 and "exps" in name))
    assert len(set(kinds_of(head, shape, on_cards))) < len(set(kinds_of(head, shape, halved))) < len(shape.layers)
    bare = header_of(keys("qwen3moe", {"block_count": 48, "embedding_length": 64, "attention.head_count": 4}))
    assert len(set(kinds_of(bare, shape, halved))) == len(shape.layers), "of what sizes they are is not known"


@pytest.mark.parametrize("kinds", ["a", "ab", "abc", "abcdefgh", "aaabbbbbbbb", "a" * 40])
def test_first_and_last_are_always_there(kinds: str) -> None:
    kept = Selection(kinds).layers
    assert (kept[0], kept[-1]) == (0, len(kinds) - 1)
    assert kept == sorted(set(kept))


@pytest.mark.parametrize("name", [name for name, model in models.MODELS.items() if model.architecture in BUILDERS])
def test_more_layers_give_the_same_figure(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    head = header(name)
    shape = read_shape(head)
    some = [reserve(head, shape, asked, cut(asked)) for asked in SETTINGS]
    monkeypatch.setattr(Selection, "layers", property(lambda _: range(len(shape.trunk))))
    assert some == [reserve(head, shape, asked, cut(asked)) for asked in SETTINGS]
