"""Drift in words, the same on a terminal and on a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llamarig.compare import Action
from llamarig.fleet.drift.fleet import Counts
from llamarig.fleet.drift.since import Since

_NOTHING = ("", "absent", "none", "nothing", "not installed")
"""What is said of a thing that is not there; its reason says so already."""
_CAUSE = {"host": "changed on the host", "spec": "the spec or llamarig changed", "unknown": ""}


def difference_words(action: Action) -> str:
    """The reason; with what was expected and seen where something is there and says more than the reason."""
    told = action.observed in action.reason and (action.expected in action.reason or action.observed == action.reason)
    if told or action.observed in _NOTHING:
        return action.reason
    return f"{action.reason} (expected {action.expected}, observed {action.observed})"


def since_words(since: Since) -> str:
    """Since when, what tells so, and whether host or spec has moved; empty for a host that nothing was applied to."""
    if since.cause == "spec" and not since.after:
        return ""
    if since.after and since.after == since.before:
        when = f"since {since.after} ({since.by})"
    elif since.after and since.before:
        when = f"between {since.after} (record) and {since.before} ({since.by})"
    elif since.before:
        when = f"since {since.before} or earlier ({since.by})"
    elif since.after:
        when = f"after {since.after} (record)"
    else:
        when = "since when is not known"
    return ", ".join(filter(None, [_CAUSE[since.cause], when]))


def record_words(record: Mapping[str, Any]) -> str:
    """Which record a host is held against."""
    state = record.get("state")
    if state != "ok":
        return "never applied" if state == "absent" else f"its record is {state}"
    told = f"record of {record.get('applied-at')} from {record.get('applied-from')}"
    return f"{told}, run {record['run']}" if record.get("run") else told


def summary_words(counts: Counts) -> str:
    """``8 hosts: 5 as specified, 2 differ, 1 could not be looked at``."""
    parts = [f"{counts.as_specified} as specified"]
    parts += [f"{counts.differ} {'differs' if counts.differ == 1 else 'differ'}"] if counts.differ else []
    parts += [f"{counts.not_looked_at} could not be looked at"] if counts.not_looked_at else []
    return f"{counts.hosts} host{'' if counts.hosts == 1 else 's'}: " + ", ".join(parts)
