"""Quoting for systemd unit files: any text survives as exactly one word.

The rules are systemd's own, from systemd.syntax(7) "Quoting", systemd.unit(5)
"Specifiers" and systemd.service(5) "Command lines". In the order in which
systemd applies them when it reads a line:

1. a line that ends in an odd backslash goes on; lines that begin with ``#`` or
   ``;`` between are dropped; CR, LF and NUL end a line,
2. white space separates words, ``"`` and ``'`` hold one together, C escapes are
   resolved inside and outside of quotes,
3. ``%`` begins a specifier, ``%%`` is one per cent sign,
4. in command lines only, ``$NAME`` and ``${NAME}`` are replaced and ``$$`` is one
   dollar sign, and a lone ``;`` separates commands unless it is quoted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from llamarig.errors import RigError

_PLAIN = re.compile(r"[A-Za-z0-9/_.,:=+@-]+")
"""Words that no rule touches; everything else is quoted."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_IMPOSSIBLE = re.compile(r"[\x00\ud800-\udfff]")

_MAX_LINE = (1 << 20) - 4096
"""Bytes. systemd refuses a line, continuations included, of 1 MiB and more."""


def _escape(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if character == "%":
        return "%%"
    if _CONTROL.fullmatch(character):
        return f"\\x{ord(character):02x}"
    return character


def quote(text: str) -> str:
    """One word of a setting that is split into words, such as ``Environment=``.

    Raises :class:`RigError` for what no unit file can hold: NUL, and text that is
    not valid Unicode.
    """
    if _IMPOSSIBLE.search(text):
        raise RigError(
            what=f"{text[:60]!r} cannot be written into a unit file",
            why="it holds a NUL character or text that is not valid Unicode",
            fix="remove the character from the value in the spec",
        )
    if _PLAIN.fullmatch(text):
        return text
    return '"' + "".join(map(_escape, text)) + '"'


def quote_argument(text: str) -> str:
    """One word of a command line (``ExecStart=`` and its kin)."""
    return quote(text).replace("$", "$$")


def path_value(text: str) -> str:
    """A path in a setting that takes one path and no words, where only specifiers are special."""
    return text.replace("%", "%%")


def _lone_flag(words: list[str]) -> bool:
    return len(words) == 1 and words[0].startswith("-") and words[0] != "--"


def command_line(words: Iterable[str]) -> str:
    """The value of an ``Exec…=`` setting, a flag and its value a line, so that people can read and diff it.

    The first word must be an absolute path: systemd reads prefixes such as ``-`` and
    ``@`` there. Raises :class:`RigError` when the line gets too long for systemd.
    """
    lines: list[list[str]] = []
    for word in words:
        if lines and not word.startswith("-") and _lone_flag(lines[-1]):
            lines[-1].append(quote_argument(word))
        else:
            lines.append([quote_argument(word)])
    line = " \\\n    ".join(" ".join(words) for words in lines)
    if len(line.encode()) > _MAX_LINE:
        raise RigError(
            what="the command line is too long for a unit file",
            why=f"it takes {len(line.encode())} bytes, systemd reads less than 1 MiB",
            fix="shorten unsafe-args or the longest value of the service",
        )
    return line
