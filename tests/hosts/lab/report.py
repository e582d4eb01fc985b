"""Reads what ``llamarig apply --json`` reports."""

from __future__ import annotations

from typing import Any

from lab.packages import LabError


def host_reports(report: Any) -> list[dict[str, Any]]:
    """One report a host; a report over several hosts keeps them under ``hosts``."""
    if isinstance(report, dict):
        found = report.get("hosts", [report])
        if isinstance(found, list) and all(isinstance(each, dict) for each in found):
            return found
    raise LabError(f"this is no report of an apply: {report!r}")


def actions_of(report: Any) -> list[dict[str, Any]]:
    """Every action that a report names, over all its hosts.

    A report without the key is an error and not a host with nothing to do.
    """
    actions: list[dict[str, Any]] = []
    for each in host_reports(report):
        if not isinstance(each.get("actions"), list):
            raise LabError(f"this report names no actions: {each!r}")
        actions += each["actions"]
    return actions
