"""What the watch over power wrote down on the host: it looks every few minutes, doctor only now."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from llamarig.prove.doctor.bundle import Bundle
from llamarig.prove.doctor.diagnosis import Diagnosis
from llamarig.prove.hostile import integer, mapping, show, text

_SLOWED = {
    "software-thermal": "heat",
    "hardware-thermal": "heat that its own protection stopped",
    "power-brake": "a signal of the power supply",
}
"""What a card is slowed down by beside its power limit, which does so by design."""
_LEAST_US = 1_000_000
"""A second. Shorter ones are no cause of anything that somebody notices."""


def _state(bundle: Bundle) -> dict[str, Any]:
    try:
        data = json.loads(bundle.text("power-state") or "{}")
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def throttled_of_late(bundle: Bundle) -> Iterator[Diagnosis]:
    """A card that was slowed down by heat or its supply between the last two looks of the watch."""
    for card in mapping(_state(bundle), "cards").values():
        for reason, words in _SLOWED.items():
            slowed = integer(mapping(card, "throttled-us"), reason) or 0
            if slowed >= _LEAST_US:
                yield Diagnosis(
                    "throttled-of-late",
                    "warning",
                    f"card {show(text(card, 'name'), 40)} was slowed down for {slowed / 1e6:.0f} s by {words}",
                    "between the last two looks of the watch; measured speeds of that time do not count",
                    "clean filters and fans, lower the power limit, check the supply",
                    f"{reason}: {slowed} us",
                )


def changed_by_others(bundle: Bundle) -> Iterator[Diagnosis]:
    """Another program that sets power limits (lium-io pull request 1229, nv-gpu-powerlimit-setup issue 1)."""
    for card in mapping(_state(bundle), "cards").values():
        others = mapping(card, "changed-by-others")
        count = integer(others, "count") or 0
        if count > 0:
            yield Diagnosis(
                "limit-set-by-others",
                "warning",
                f"something else has set the power limit of card {show(text(card, 'name'), 40)}, {count} times",
                f"last seen at {show(text(others, 'at'), 30)}; the watch has set it back each time",
                "look for other units and scripts with nvidia-smi -pl, and take them out",
            )


def watch_failed(bundle: Bundle) -> Iterator[Diagnosis]:
    """The watch could not set limits when it last ran."""
    state = _state(bundle)
    found = [text(state, "error"), *(text(card, "error") for card in mapping(state, "cards").values())]
    for error in filter(None, found):
        yield Diagnosis(
            "power-watch-failed",
            "warning",
            "the power limits were not set when they were last looked at",
            show(error, 300),
            "`journalctl -u llamarig-power.service -n 20` has the words of every look",
        )


RULES = (throttled_of_late, changed_by_others, watch_failed)
