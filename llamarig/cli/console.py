"""A console that lets no name of a file, a spec or a host steer the terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

_KEPT = "\n\t"


def plain(text: str) -> str:
    """``text`` with what steers a terminal, or hides or turns text, written as escapes."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(ch if ch in _KEPT or ch.isprintable() else ascii(ch)[1:-1] for ch in text)


class SafeConsole(Console):
    """Prints strings, marked up or not, and texts with such characters as escapes; colours are rich's own."""

    def print(self, *objects: Any, **options: Any) -> None:
        """As rich's, of what is safe to print."""
        super().print(*(_safe(each) for each in objects), **options)


def _safe(each: Any) -> Any:
    if isinstance(each, str):
        return plain(each)
    if isinstance(each, Text) and plain(each.plain) != each.plain:
        found = each.copy()
        # One sign for one, so that the colours stay where they are.
        found.plain = "".join(ch if plain(ch) == ch else "\N{REPLACEMENT CHARACTER}" for ch in each.plain)
        return found
    return each
