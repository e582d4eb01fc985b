"""What the watch over power wrote down is told, and a broken state is not."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from llamarig.prove.doctor import examine
from llamarig.prove.doctor.bundle import read_bundle
from tests.support.doctor_bundles import HEALTHY

CARD: dict[str, Any] = {"name": "upper", "throttled-us": {"power-cap": 9_000_000}, "changed-by-others": {}, "error": ""}


def codes(text: str) -> dict[str, str]:
    document = copy.deepcopy(HEALTHY)
    document["parts"]["power-state"] = {"status": 0, "text": text}
    return {each.code: f"{each.what} {each.cause}" for each in examine(read_bundle(document))}


def state(card: dict[str, Any] | None = None, *, error: str = "") -> str:
    return json.dumps({"schema": 1, "error": error, "cards": {"GPU-a": CARD | (card or {})}})


def test_a_card_that_only_keeps_its_limit_is_healthy() -> None:
    assert codes(state()) == {}


@pytest.mark.parametrize("reason", ["software-thermal", "hardware-thermal", "power-brake"])
def test_a_card_that_was_slowed_down(reason: str) -> None:
    assert "slowed down for 5 s" in codes(state({"throttled-us": {reason: 5_000_000}}))["throttled-of-late"]
    assert codes(state({"throttled-us": {reason: 999_999}})) == {}


def test_another_writer() -> None:
    told = codes(state({"changed-by-others": {"count": 3, "at": "2026-11-30T01:00:00Z"}}))
    assert "3 times" in told["limit-set-by-others"]


def test_a_watch_that_failed() -> None:
    assert "does not answer" in codes(state(error="the driver does not answer"))["power-watch-failed"]
    assert "not taken" in codes(state({"error": "the limit was not taken"}))["power-watch-failed"]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"cards": 7}', '{"cards": {"a": 7}}', state({"throttled-us": 7}), '{"error": ["x"]}']
)
def test_a_broken_state_tells_nothing(text: str) -> None:
    assert codes(text) == {}
