"""Actions told as drift: what was expected, what is there."""

from __future__ import annotations

from typing import Any

from llamarig.compare.action import Action


def drift_json(host: str, actions: list[Action]) -> dict[str, Any]:
    """The documented form of ``llamarig drift --json``."""
    return {
        "host": host,
        "drift": [
            {
                "subject": action.subject,
                "expected": action.expected,
                "observed": action.observed,
                "reason": f"{action.kind}: {action.reason}",
            }
            for action in actions
        ],
    }
