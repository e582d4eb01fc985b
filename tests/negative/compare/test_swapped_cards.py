"""A card that is not the one that was pinned is an error on every look, and never a new pin.

No GPU is here: the observations are composed.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from llamarig.cli.looked import judged
from llamarig.compare import learn
from llamarig.compare.view import View
from llamarig.converge.decide import decide
from llamarig.errors import ExitCode, RigError
from llamarig.render.wanted import Wanted, WantedCard
from tests.support.compare.cases import observation, wanted_state

ONE, TWO, NEW = (f"GPU-{digit * 8}-2222-3333-4444-555555555555" for digit in "abc")
UPPER, LOWER = "0000:01:00.0", "0000:02:00.0"


def wanted(upper: str | None = None, lower: str | None = None) -> Wanted:
    return replace(wanted_state(), cards=(WantedCard("upper", UPPER, upper), WantedCard("lower", LOWER, lower)))


def seen(cards: dict[str, str], recorded: dict[str, str] | None = None) -> dict[str, Any]:
    told = observation(wanted_state())
    told["record"]["gpus"] = {"upper": ONE, "lower": TWO} if recorded is None else recorded
    told["gpus"] = [{"bus-id": place, "device": "0x2684", "uuid": uuid} for place, uuid in cards.items()]
    return told


@pytest.mark.parametrize(
    ("spec", "told", "words"),
    [
        (wanted(), seen({UPPER: NEW, LOWER: TWO}), f"at {UPPER} the driver tells {NEW}, the record of the last apply"),
        (wanted(ONE), seen({UPPER: NEW, LOWER: TWO}, {}), f"at {UPPER} the driver tells {NEW}, the spec names {ONE}"),
        (wanted(), seen({UPPER: TWO, LOWER: ONE}), f"names {ONE}; that one is now at {LOWER}"),
        (wanted(), seen({"0000:03:00.0": ONE, LOWER: TWO}), "tells of no card, the record of the last apply names"),
        (wanted(NEW), seen({UPPER: ONE, LOWER: TWO}), f"the driver tells {ONE}, the spec names {NEW}"),
    ],
)
def test_another_card_is_refused_with_both_uuids(spec: Wanted, told: dict[str, Any], words: str) -> None:
    with pytest.raises(RigError, match="card upper is not the one that it was") as refused:
        learn(spec, told)
    assert words in refused.value.why
    assert "gpus.upper.uuid" in refused.value.fix
    assert refused.value.code == ExitCode.FINDING
    with pytest.raises(RigError):
        decide(spec.to_json(), told)
    looked = judged(spec, told)
    assert looked.error is not None
    assert looked.actions == ()


def test_a_user_who_names_the_new_card_is_believed() -> None:
    told = seen({UPPER: NEW, LOWER: TWO})
    found = learn(wanted(NEW), told)
    assert [card.uuid for card in found.cards] == [NEW, TWO]
    assert [action.kind for action in judged(wanted(NEW), told).actions] == ["record"]


def test_the_pinned_cards_in_their_places_are_right() -> None:
    told = seen({UPPER: ONE, LOWER: TWO})
    assert [card.uuid for card in learn(wanted(), told).cards] == [ONE, TWO]
    assert judged(wanted(), told).error is None


def test_a_record_that_holds_nonsense_pins_nothing() -> None:
    told = seen({UPPER: ONE, LOWER: TWO}, {"upper": "GPU-x\x1b[2J", "lower": "\n"})
    assert [card.uuid for card in learn(wanted(), told).cards] == [ONE, TWO]
    told["record"]["gpus"] = ["upper"]
    assert View(wanted(), told).record["gpus"] == ["upper"]
    assert [card.uuid for card in learn(wanted(), told).cards] == [ONE, TWO]
    assert "x1b" not in json.dumps(learn(wanted(), told).to_json())
