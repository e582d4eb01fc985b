"""A host with two cards and a limit, and its observation where all of it holds. Composed, not recorded."""

from __future__ import annotations

import copy
from typing import Any

from llamarig.compare.power import SLEEP_TARGETS
from llamarig.render import wanted_state
from llamarig.render.power import SERVICE, TIMER
from llamarig.render.wanted import Wanted
from tests.golden.cases import HERE
from tests.support.power.bench import ADA, BLACKWELL
from tests.support.rendering.composed import changed, plan_of

BOOT = "6f1d0a52-0000-4000-8000-000000000001"


def wanted(*changes: tuple[str, Any]) -> Wanted:
    """The golden host ``twin`` with a limit on its Blackwell card."""
    given = (("gpus.blackwell.power-limit-w", 60), ("gpus.ada.uuid", ADA), *changes)
    spec = changed("twin", *given)
    return wanted_state(spec, plan_of(spec), HERE)


def observed(state: Wanted) -> dict[str, Any]:
    """The part of an observation that the comparison of power reads, as ``state`` wants it."""
    power = state.power
    assert power is not None
    files = {
        file.path: {"type": "file", "sha256": file.sha256, "mode": file.mode, "owner": "root", "group": "root"}
        for file in power.files
    }
    unit = {"load": "loaded", "active": "active", "enabled": "enabled", "drop-ins": [], "need-reload": False}
    cards = {
        card.uuid: {
            "name": card.name,
            "wanted-w": card.watts,
            "limit-w": card.watts or 70.0,
            "enforced-w": 60.0,
            "error": "",
        }
        for card in power.cards
    }
    return copy.deepcopy(
        {
            "schema": 1,
            "boot-id": BOOT,
            "units": {SERVICE: unit | {"active": "inactive"}, TIMER: unit},
            "power": {
                "files": files,
                "masked": list(SLEEP_TARGETS),
                "we-masked": True,
                "state": {"schema": 1, "boot-id": BOOT, "time": 1.0, "error": "", "cards": cards},
            },
        }
    )


__all__ = ["ADA", "BLACKWELL", "BOOT", "observed", "wanted"]
