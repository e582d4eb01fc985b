"""Reading what a host said: wrong types are nothing, and text is made printable before it is shown."""

from __future__ import annotations

from typing import Any

SHOWN = 200
"""Characters of one observed text that a detail shows."""


def show(value: Any, limit: int = SHOWN) -> str:
    """``value`` on one line without control or direction characters, cut at ``limit`` characters."""
    text = value if isinstance(value, str) else repr(value)
    safe = "".join(ch if ch.isprintable() else ascii(ch)[1:-1] for ch in text[: limit + 1])
    return safe if len(safe) <= limit else safe[:limit] + "…"


def mapping(data: Any, *path: str) -> dict[str, Any]:
    """The mapping at ``path``, or an empty one where there is something else."""
    for key in path:
        data = data.get(key) if isinstance(data, dict) else None
    return data if isinstance(data, dict) else {}


def sequence(data: Any, *path: str) -> list[Any]:
    """The list at ``path``, or an empty one."""
    for key in path:
        data = data.get(key) if isinstance(data, dict) else None
    return data if isinstance(data, list) else []


def text(data: Any, *path: str) -> str:
    """The string at ``path``, or an empty one."""
    for key in path:
        data = data.get(key) if isinstance(data, dict) else None
    return data if isinstance(data, str) else ""


def number(data: Any, *path: str) -> float | None:
    """The number at ``path``; a boolean is none."""
    for key in path:
        data = data.get(key) if isinstance(data, dict) else None
    return data if isinstance(data, (int, float)) and not isinstance(data, bool) else None


def integer(data: Any, *path: str) -> int | None:
    """The whole number at ``path``; a boolean or a fraction is none."""
    found = number(data, *path)
    return found if isinstance(found, int) else None


def count(number_of: int, noun: str, several: str = "") -> str:
    """A number with its noun: ``1 file``, ``2 files``; ``several`` where the plural is another word."""
    return f"{number_of} {noun if number_of == 1 else several or noun + 's'}"
