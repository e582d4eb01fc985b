"""Making actions whose every word is fit for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llamarig.compare.action import Action
from llamarig.compare.text import LONGEST_REASON, LONGEST_SUBJECT, printable
from llamarig.compare.view import same_mode


def fit(action: Action) -> Action:
    """The same action with all its texts escaped and shortened, and ``restarts`` sorted, each once."""
    return Action(
        kind=action.kind,
        subject=printable(action.subject, LONGEST_SUBJECT),
        reason=printable(action.reason, LONGEST_REASON),
        expected=printable(action.expected),
        observed=printable(action.observed),
        restarts=tuple(sorted(set(action.restarts))),
    )


def ownership(seen: Mapping[str, Any], mode: str, owner: str, group: str | None) -> list[str]:
    """What is wrong with the mode, owner and group of something that is there."""
    wrong: list[str] = []
    if not same_mode(mode, seen.get("mode")):
        wrong.append(f"mode {printable(seen.get('mode'))} instead of {mode}")
    if seen.get("owner") != owner:
        wrong.append(f"owner {printable(seen.get('owner'))} instead of {owner}")
    if group is not None and seen.get("group") != group:
        wrong.append(f"group {printable(seen.get('group'))} instead of {group}")
    return wrong


def absence(seen: Mapping[str, Any], wanted: str) -> str | None:
    """Why something cannot be compared further: it is not there, is something else, or cannot be read."""
    kind = seen.get("type")
    if kind == wanted:
        return None
    if kind == "absent":
        return "is not there"
    if kind == "unreadable":
        return f"cannot be read: {printable(seen.get('error', ''))}"
    if kind is None:
        return "was not looked at"
    return f"is a {printable(kind)} instead of a {wanted}"
