"""Observed words made fit to be read: one line, printable, short, without secrets."""

from __future__ import annotations

import re
import unicodedata

LONGEST = 160
"""Characters of an observed value in a sentence."""
LONGEST_REASON = 600
LONGEST_SUBJECT = 1024
_SECRET = re.compile(r"(?i)((?:--api-key|--hf-token|-hft)(?:\s+|=)|[A-Z0-9_]*(?:API_KEY|TOKEN|SECRET|PASSWORD)=)(\S+)")


def hide_secrets(text: str) -> str:
    """The text with the value of a key or token on a command line or in a variable blotted out."""
    return _SECRET.sub(r"\1<hidden>", text)


def printable(value: object, limit: int = LONGEST) -> str:
    """``value`` as one line: what steers a terminal, or hides or turns text, is written as an escape.

    Letters of any script stay; of what is longer than ``limit`` characters the start stays.
    """
    text = _worded(value)
    shown = "".join(ch if _plain(ch) else _escaped(ch) for ch in hide_secrets(text[: 4 * limit]))
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def _worded(value: object) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return "unknown"
    return repr(value) if isinstance(value, bool | float | int) else f"a {type(value).__name__}"


def _plain(ch: str) -> bool:
    return ch == " " or (" " < ch < "\x7f") or (ch > "\x7f" and unicodedata.category(ch)[0] not in "CZ")


def _escaped(ch: str) -> str:
    code = ord(ch)
    if code < 1 << 8:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 1 << 16 else f"\\U{code:08x}"


def short_hash(value: object) -> str:
    """The first twelve digits of a hash, or ``unknown``."""
    return f"sha256 {printable(value)[:12]}" if isinstance(value, str) and value else "unknown"


def counted(number: int, noun: str) -> str:
    """``1 host``, ``2 hosts``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
