"""What flash attention needs on a card beside its result."""

from __future__ import annotations

import pytest

from llamarig.memory.graph import ops
from llamarig.memory.graph.cuda import attend_on_card
from llamarig.memory.graph.tensors import Tensor, graph_input, stored

CELLS = 4096


def attention(  # noqa: PLR0913 - each is one property of the operation
    kind_k: str, kind_v: str, *, head: int = 128, head_v: int = 0, shared: int = 4, tokens: int = 512
) -> Tensor:
    head_v = head_v or head
    keys = stored(0, (head, CELLS, 2, 1), 1, kind=kind_k, weight=False)
    values = stored(0, (head_v, CELLS, 2, 1), 1, kind=kind_v, weight=False)
    query = graph_input("f32", head, tokens, 2 * shared)
    result = ops.flash_attention(query, keys, values, graph_input("f16", CELLS, tokens))
    attend_on_card(result)
    return result


def test_f16_is_read_as_it_is() -> None:
    assert attention("f16", "f16").staging == 0


@pytest.mark.parametrize("kind", ["q8_0", "q4_0", "bf16", "f32"])
def test_any_other_type_is_copied(kind: str) -> None:
    assert attention(kind, kind).staging == 2 * CELLS * 2 * 128 * 2


def test_only_the_one_that_is_not_f16_is_copied() -> None:
    assert attention("f16", "q8_0").staging == CELLS * 2 * 128 * 2


def test_a_single_token_is_read_as_it_is_stored() -> None:
    assert attention("q8_0", "q8_0", tokens=1).staging == 0


def test_values_that_are_a_view_of_the_keys_are_copied_once() -> None:
    cache = stored(0, (576, CELLS, 1, 1), 1, kind="q8_0", weight=False)
    keys, values = ops.view(cache, (576, CELLS, 1, 1)), ops.view(cache, (512, CELLS, 1, 1))
    result = ops.flash_attention(graph_input("f32", 576, 512, 16), keys, values, graph_input("f16", CELLS, 512))
    attend_on_card(result)
    assert result.staging == CELLS * 576 * 2


@pytest.mark.parametrize(
    ("change", "host"),
    [
        ({"kind_k": "iq4_nl", "kind_v": "iq4_nl"}, True),
        ({"head": 100}, True),
        ({"head": 128, "head_v": 64}, True),
        ({"head": 512, "shared": 1}, True),
        ({"head": 512, "shared": 2}, False),
        ({"head": 576, "head_v": 512}, False),
        ({"head": 192, "head_v": 128, "shared": 4}, True),
        ({"head": 192, "head_v": 128, "shared": 8}, False),
        ({"head": 80}, False),
    ],
)
def test_what_no_card_computes_goes_to_the_host(change: dict[str, object], host: bool) -> None:
    kinds = {"kind_k": "f16", "kind_v": "f16"}
    result = attention(**{**kinds, **change})  # type: ignore[arg-type] # arguments by their names
    assert result.host_only is host
    assert result.staging == 0
