"""The order in which people count: pc2 before pc10."""

from __future__ import annotations

import re
from pathlib import Path

_DIGITS = re.compile(r"(\d+)")


def natural(name: str) -> tuple[tuple[int, str], ...]:
    """A key to sort names by, in which numbers count as numbers."""
    parts = [(int(part), "") if part.isdecimal() else (-1, part) for part in _DIGITS.split(name)]
    return (*parts, (-2, name))


def natural_path(path: Path) -> tuple[tuple[tuple[int, str], ...], ...]:
    """The same for paths, directory by directory."""
    return tuple(natural(part) for part in path.with_suffix("").parts)


__all__ = ["natural", "natural_path"]
