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


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((code, re.compile(known.pattern, re.IGNORECASE)) for code, known in error_texts().items())


def known_texts(text: str) -> Iterator[Diagnosis]:
    """Each known text once, with the last line that has it; lines are read one by one and cut."""
    found: dict[str, str] = {}
    for line in text.splitlines()[-MAX_LINES:]:
        for code, pattern in _patterns():
            if pattern.search(line[:MAX_LINE]):
                found[code] = line
    for code, line in found.items():
        known = error_texts()[code]
        yield Diagnosis(code, known.severity, known.what, known.cause, known.fix, show(line.strip(), 200))
