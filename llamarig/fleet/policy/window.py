"""Whether a maintenance window is open, and when the next one opens; read on the clock of the wall."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta, tzinfo

from llamarig.spec.window import DAYS, Window

_DAY = 24 * 60
_MINUTE = timedelta(minutes=1)


def in_window(windows: Sequence[Window], now: datetime) -> bool:
    """Whether one of the windows is open at ``now``, a time of the host's own zone; True where there is no window."""
    minute, day = now.hour * 60 + now.minute, now.weekday()
    return not windows or any(_holds(window, day, minute) for window in windows)


def _holds(window: Window, day: int, minute: int) -> bool:
    today = day in window.days and window.start <= minute < window.end
    over_midnight = (day - 1) % len(DAYS) in window.days and minute < window.end - _DAY
    return today or over_midnight


def next_opening(windows: Sequence[Window], now: datetime, zone: tzinfo) -> datetime:
    """When a host may be changed, at ``now`` or later, in ``zone``; ``now`` knows its own zone.

    An hour that the change to summer time leaves out does not open a window; one that began in it opens behind it.
    """
    here = now.astimezone(zone)
    if in_window(windows, here):
        return here
    return min(each for window in windows for each in _openings(windows, window, here, zone) if each > here)


def _openings(windows: Sequence[Window], window: Window, here: datetime, zone: tzinfo) -> Iterator[datetime]:
    # Two weeks: the one opening of a week may fall into the hour that is left out.
    for days in range(2 * len(DAYS) + 1):
        date = here.date() + timedelta(days=days)
        if date.weekday() not in window.days:
            continue
        start = datetime(date.year, date.month, date.day, window.start // 60, window.start % 60, tzinfo=zone)
        first, last = (start.replace(fold=fold).astimezone(UTC) for fold in (0, 1))
        # Where that hour is left out, the two readings lie around the change, the later one first.
        moment = min(first, last)
        while moment <= first:
            there = moment.astimezone(zone)
            if in_window(windows, there):
                yield there
                break
            moment += _MINUTE
