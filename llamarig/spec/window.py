"""Maintenance windows: days and hours on the clock of the wall, ``Mon-Fri 22:00-06:00``."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator

from llamarig.spec.base import SpecValueError

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_TEXT = re.compile(r"(?:(?P<days>[A-Za-z,-]+) +)?(?P<start>\d{1,2}:\d{2})-(?P<end>\d{1,2}:\d{2})", re.ASCII)
_FORM = "write days and hours: `22:00-06:00`, `Sat 02:00-06:00`, `Mon-Fri,Sun 22:00-06:00`"
_DAY = 24 * 60


@dataclass(frozen=True, slots=True)
class Window:
    """Minutes of a day, from ``start`` until ``end`` (which is not in it), on those days on which it begins.

    ``end`` is above ``start``; beyond 24 hours it lies on the next day.
    """

    days: frozenset[int]
    """0 for Monday."""
    start: int
    end: int


def parse_window(text: str) -> Window:
    """The window that the text describes; raises :class:`SpecValueError` when it describes none."""
    found = _TEXT.fullmatch(text.strip())
    if found is None:
        plain = "".join(str(unicodedata.decimal(ch)) if ch.isdecimal() else ch for ch in text)
        if plain != text:
            raise SpecValueError("has digits other than 0 to 9", f"write {plain}")
        raise SpecValueError("is no maintenance window", _FORM)
    start, end = _minutes(found["start"]), _minutes(found["end"])
    if start == _DAY:
        raise SpecValueError("begins at 24:00", "write 00:00, and the day after")
    if start == end:
        raise SpecValueError("begins and ends at the same minute", "write 00:00-24:00 for the whole day")
    days = _days(found["days"]) if found["days"] else frozenset(range(len(DAYS)))
    return Window(days, start, end if end > start else end + _DAY)


def _minutes(text: str) -> int:
    hours, minutes = (int(part) for part in text.split(":"))
    if hours * 60 + minutes > _DAY or minutes > 59:  # noqa: PLR2004 - minutes of an hour
        raise SpecValueError(f"has no hour {text}", "hours go from 00:00 to 24:00")
    return hours * 60 + minutes


def _days(text: str) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        begin, end = _day(first), _day(last if dash else first)
        # Over the end of the week: Sat-Mon.
        found |= {each % len(DAYS) for each in range(begin, (end if end >= begin else end + len(DAYS)) + 1)}
    return frozenset(found)


def _day(text: str) -> int:
    name = text[:3].capitalize()
    if name not in DAYS or len(text) != len(name):
        raise SpecValueError(f"has no day {text!r}", f"the days are {', '.join(DAYS)}")
    return DAYS.index(name)


def _window(text: str) -> str:
    parse_window(text)
    return text


WindowText = Annotated[str, AfterValidator(_window)]
"""Days and hours: ``Sat 02:00-06:00``; over midnight it belongs to the day on which it begins."""
