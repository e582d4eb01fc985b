"""Known error texts of engine, driver and package tools, wherever they stand: a log, or pasted by a user."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from llamarig.catalog.error_texts import error_texts
from llamarig.prove.doctor.diagnosis import Diagnosis
from llamarig.prove.hostile import show

MAX_LINES = 20_000
MAX_LINE = 2_000

_ERROR = re.compile(
    r"(^|\]: )(?-i:E: )|"  # apt's mark, alone or behind the name of a unit in a journal
    r"\b(error|err|fail(ed|s|ure)?|reject(ed|s|ing)?|fatal|abort(ed|ing)?|assert(ion)?|exception|traceback|panic|oops|"
    r"killed|crash(ed)?|segfault|segmentation fault|core dumped|cannot|can't|couldn't|could not|unable|"
    r"denied|refused|invalid|illegal|unknown|unsupported|not supported|not found|"
    r"no such|missing|corrupt(ed)?|timed? ?out|mismatch|out of memory)\b",
    re.IGNORECASE,
)
"""What a line that somebody asks about most often has in it."""


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((code, re.compile(known.pattern, re.IGNORECASE)) for code, known in error_texts().items())


def known_texts(text: str, *, pasted: bool = False) -> Iterator[Diagnosis]:
    """Each known text once, with the last line that has it; lines are read one by one and cut.

    General ones are said only where no other error is found. ``pasted``: a user asks about this text.
    """
    found: dict[str, str] = {}
    for line in _lines(text):
        for code, pattern in _patterns():
            if pattern.search(line):
                found[code] = line
    exact = any(not error_texts()[code].general and error_texts()[code].severity == "error" for code in found)
    for code, line in found.items():
        known = error_texts()[code]
        if (known.general and exact) or (known.pasted_only and not pasted):
            continue
        fix = f"{known.fix} (docs/{known.page})" if known.page else known.fix
        yield Diagnosis(code, known.severity, known.what, known.cause, fix, show(line.strip(), 200))


def unknown_error(text: str) -> str | None:
    """The last line that looks like an error and has no known text."""
    for line in reversed(_lines(text)):
        if _ERROR.search(line) and not any(pattern.search(line) for _, pattern in _patterns()):
            return line
    return None


def _lines(text: str) -> list[str]:
    return [line[:MAX_LINE] for line in text.splitlines()[-MAX_LINES:]]
