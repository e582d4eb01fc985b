"""Findings and alternatives in words, the same on a terminal and on a page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from llamarig.plan import Finding

_ORDER = ("error", "warning", "note")


def of_worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """Errors, then warnings, then notes, each in the plan's order."""
    return sorted(findings, key=lambda finding: _ORDER.index(finding.severity))


def flow(value: Any) -> str:
    """A value as one writes it in a spec, on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {flow(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(flow(each) for each in value) + "]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)


def change_words(change: Mapping[str, Any]) -> str:
    """The keys of a service that an alternative changes."""
    return ", ".join(f"{key}: {flow(value)}" for key, value in change.items())


def effect_words(entry: Mapping[str, Any]) -> str:
    """What an alternative costs, and what stays free then."""
    free = (f"{mib:,.0f} MiB free on {gpu}" for gpu, mib in entry["free-mib"].items())
    return "; ".join(filter(None, (entry["harm"], ", ".join(free))))
