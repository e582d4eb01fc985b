"""Which drop-ins change a unit of ours, and which of them an apply takes away."""

from __future__ import annotations

import re

_OF_ONE_UNIT = re.compile(r"/llama-[^/]*\.d/[^/]+\Z")
_OURS_TO_REMOVE = re.compile(r"/(etc|run)/systemd/system(\.control)?/llama-[^/]*\.d/[^/]+\Z")


def of_one_unit(path: str) -> bool:
    """Whether a drop-in is of our units; those for all services of a host are its owner's policy, not ours to judge."""
    return _OF_ONE_UNIT.search(path) is not None


def removable(path: str) -> bool:
    """Whether an apply removes it: what an administrator writes, not what a package or a generator brings."""
    return _OURS_TO_REMOVE.fullmatch(path) is not None


def who_removes(path: str) -> str:
    """Who has to take away a drop-in that an apply leaves alone; empty when an apply does it."""
    if removable(path):
        return ""
    if "/generator" in path:
        return "a generator of systemd makes it: remove what it makes it from"
    return "no apply removes files there: remove it, or the package that brings it (dpkg -S)"
