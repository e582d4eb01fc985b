"""An independent reader of unit files, written from systemd's manual pages, not from our quoting.

systemd.syntax(7): lines, comments, continuation, quotes and C escapes; systemd.unit(5):
specifiers; systemd.service(5), "Command lines": ``$`` and a lone ``;``. Anything that the pages do
not allow is an error here, so that a unit that is read at all is read in one way only.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

SIMPLE = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "s": 32, "\\": 92, '"': 34, "'": 39}
NUMBERED = {"x": (2, 16), "u": (4, 16), "U": (8, 16)}
WHITE = " \t\n\r"


class UnreadableError(Exception):
    """The text is not what systemd's manual allows."""


@dataclass(frozen=True)
class Setting:
    section: str
    key: str
    value: str


def settings(text: str) -> list[Setting]:
    """Every assignment of a unit file in order; values still quoted."""
    found: list[Setting] = []
    section, pending = "", ""
    for line in re.split(r"\r\n|\n\r|\n|\r|\0", text):
        bare = line.lstrip(WHITE)
        if bare.startswith(("#", ";")):
            continue
        if pending:
            bare = pending + bare if line == bare else pending + line
        if _goes_on(bare):
            pending = bare[:-1] + " "
            continue
        pending = ""
        bare = bare.strip(WHITE)
        if not bare:
            continue
        if bare.startswith("[") and bare.endswith("]"):
            section = bare[1:-1]
            continue
        key, equals, value = bare.partition("=")
        if not equals or not section or not re.fullmatch(r"[A-Za-z]+", key):
            raise UnreadableError(bare)
        found.append(Setting(section, key, value.strip(WHITE)))
    if pending:
        raise UnreadableError("the file ends in a continuation")
    return found


def _goes_on(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def words(value: str) -> list[str]:
    """Split a value into words: quotes removed, escapes resolved, specifiers expanded."""
    found: list[str] = []
    at = 0
    while at < len(value):
        if value[at] in WHITE:
            at += 1
            continue
        raw: list[str] = []
        quote = ""
        while at < len(value) and (quote or value[at] not in WHITE):
            character = value[at]
            if character == "\\":
                resolved, at = _unescape(value, at + 1)
                raw.append(resolved)
                continue
            if quote and character == quote:
                quote = ""
            elif not quote and character in "\"'":
                quote = character
            else:
                raw.append(character)
            at += 1
        if quote:
            raise UnreadableError(f"an open quote in {value!r}")
        found.append(_specifiers("".join(raw)))
    return found


def _unescape(value: str, at: int) -> tuple[str, int]:
    if at >= len(value):
        raise UnreadableError("a lone backslash")
    kind = value[at]
    if kind in SIMPLE:
        return chr(SIMPLE[kind]), at + 1
    length, base = NUMBERED.get(kind, (3, 8))
    start = at + 1 if kind in NUMBERED else at
    digits = value[start : start + length]
    if len(digits) != length:
        raise UnreadableError(f"a short escape in {value!r}")
    number = int(digits, base)
    if number == 0:
        raise UnreadableError("an escaped NUL")
    return chr(number), start + length


def _specifiers(word: str) -> str:
    for match in re.finditer(r"%(.?)", word.replace("%%", "")):
        raise UnreadableError(f"specifier {match.group(0)!r} in {word!r}")
    return word.replace("%%", "%")


def arguments(value: str) -> list[str]:
    """The words of a command line, as the program receives them."""
    if re.search(r"(^|\s);(\s|$)", _outside_quotes(value)):
        raise UnreadableError("a separator between commands")
    return [_dollars(word) for word in words(value)]


def _outside_quotes(value: str) -> str:
    return re.sub(r'"(\\.|[^"\\])*"', "q", value)


def _dollars(word: str) -> str:
    if re.search(r"\$", word.replace("$$", "")):
        raise UnreadableError(f"a variable in {word!r}")
    return word.replace("$$", "$")


def values(text: str, key: str) -> list[str]:
    """Every value of one key."""
    return [setting.value for setting in settings(text) if setting.key == key]
