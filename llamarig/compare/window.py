"""Whether a maintenance window is open, and when the next one opens; read on the clock of the wall."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from llamarig.compare.view import as_int
from llamarig.spec.window import DAYS, Window

_DAY = 24 * 60
_MOST_OFFSET_S = 18 * 3600
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


def closed(windows: Sequence[Window], zone_name: str | None, clock: Mapping[str, Any], now: float) -> str:
    """Why a host must not be touched at ``now`` (seconds of the epoch), with when it may; empty when it may.

    ``clock`` is what rig_idle saw of the host's own (``timezone``, ``utc-offset-s``); it counts where ``zone_name`` is
    None. A window whose zone nobody knows counts as closed.
    """
    if not windows:
        return ""
    zone = _zone(clock, zone_name)
    if zone is None:
        return "its clock does not say which time zone it is in, and its maintenance window needs one"
    here = datetime.fromtimestamp(now, UTC).astimezone(zone)
    if in_window(windows, here):
        return ""
    opens = next_opening(windows, here, zone)
    return f"outside its maintenance window, which opens {opens:%a %d %b %H:%M} ({zone_name or 'its own time'})"


def _zone(clock: Mapping[str, Any], name: str | None) -> tzinfo | None:
    if name is not None:
        return ZoneInfo(name)
    own = clock.get("timezone")
    if isinstance(own, str) and own:
        try:
            return ZoneInfo(own)
        except (OSError, ValueError, KeyError):
            pass  # The controller may not know it; the offset of now serves for now.
    offset = as_int(clock.get("utc-offset-s"))
    if offset is None or abs(offset) > _MOST_OFFSET_S:
        return None
    return timezone(timedelta(seconds=offset))
