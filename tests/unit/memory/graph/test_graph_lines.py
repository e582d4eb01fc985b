"""The simulation against lines of the engine: equal to the hundredth of a MiB."""

from __future__ import annotations

import pytest

from llamarig.memory import read_shape
from llamarig.memory.graph.reserve import measure, reserve
from llamarig.memory.units import MIB
from llamarig.memory.window import cut
from tests.support.compute_lines import CARDS, HOST, UNIFIED, Drawn, Placed, header, settings


@pytest.mark.parametrize(("model", "vocabulary", "drawn", "printed"), HOST)
def test_the_cpu_backend(model: str, vocabulary: int, drawn: Drawn, printed: float) -> None:
    head, asked = header(model, vocabulary), settings(drawn, backend="cpu")
    found = measure(head, read_shape(head), asked, cut(asked))
    assert found.cards == ()
    assert found.host / MIB == pytest.approx(printed, abs=0.0051)


@pytest.mark.parametrize(("model", "vocabulary", "drawn", "placed", "printed"), CARDS)
def test_cards(model: str, vocabulary: int, drawn: Drawn, placed: Placed, printed: list[float]) -> None:
    layers, cards, shares = placed
    head = header(model, vocabulary)
    asked = settings(drawn, gpu_layers=layers, cards=cards, tensor_split=shares)
    found = measure(head, read_shape(head), asked, cut(asked))
    assert [size / MIB for size in (*found.cards, found.host)] == pytest.approx(printed, abs=0.0051)


@pytest.mark.parametrize(("model", "vocabulary", "drawn", "printed"), UNIFIED)
def test_a_server_with_one_cache_for_all_slots(model: str, vocabulary: int, drawn: Drawn, printed: float) -> None:
    head, asked = header(model, vocabulary), settings(drawn, backend="cpu", kv_unified=True)
    found = reserve(head, read_shape(head), asked, cut(asked))
    assert found.host / MIB == pytest.approx(printed, abs=0.0051)


def test_the_fit_tool_measures_more_than_a_server_takes() -> None:
    """All logits, and one more hidden row a token for each pass in flight on every card but the first."""
    head = header("llama-3.1-8b", 512)
    asked = settings((65_536, 256, 1, "f16", "f16", True), cards=2)
    shape, window = read_shape(head), cut(asked)
    measured, served = measure(head, shape, asked, window), reserve(head, shape, asked, window)
    assert measured.cards[0] == served.cards[0]
    assert measured.cards[1] - served.cards[1] == 4 * (256 * 4096 * 4 + 256 * 4 - 128)
