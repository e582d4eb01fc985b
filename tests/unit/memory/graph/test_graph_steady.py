"""Leaving out layers that repeat others changes no figure."""

from __future__ import annotations

from collections.abc import Hashable

import pytest

from llamarig.memory import read_shape
from llamarig.memory.graph.families import BUILDERS
from llamarig.memory.graph.reserve import reserve
from llamarig.memory.graph.steady import Selection
from llamarig.memory.window import cut
from tests.support import models
from tests.support.compute_lines import header, settings

SETTINGS = [
    settings((32_768, 512, 1, "f16", "f16", True)),
    settings((8192, 128, 2, "f16", "f16", False), backend="cpu"),
    settings((65_536, 512, 1, "q4_0", "q4_0", True), cards=2),
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
    assert selection.layers == list(range(48))


def test_what_is_left_out_is_an_even_number_of_turns() -> None:
    selection = Selection("LLLF" * 12)
    assert (48 - len(selection.layers)) % 8 == 0


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
