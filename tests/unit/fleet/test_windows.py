"""Maintenance windows: over midnight, over the week's end, and over the changes of the clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamarig.fleet.policy import in_window, next_opening
from llamarig.spec.base import SpecValueError
from llamarig.spec.window import DAYS, Window, parse_window

BERLIN = ZoneInfo("Europe/Berlin")
days = st.sampled_from(["", "Sat ", "Mon-Fri ", "Sun-Mon ", "Tue,Thu "])
clocks = st.integers(0, 47).map(lambda half: f"{half // 2:02}:{half % 2 * 30:02}")
texts = st.tuples(days, clocks, clocks).filter(lambda given: given[1] != given[2]).map("{0[0]}{0[1]}-{0[2]}".format)
moments = st.datetimes(datetime(2026, 3, 20), datetime(2026, 11, 5)).map(lambda at: at.replace(second=0, microsecond=0))


def at(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%d %H:%M").replace(tzinfo=BERLIN)


def open_at(window: str | list[str], text: str) -> bool:
    return in_window([parse_window(each) for each in ([window] if isinstance(window, str) else window)], at(text))


@pytest.mark.parametrize(
    ("window", "moment", "is_open"),
    [
        ("22:00-06:00", "2026-12-02 21:59", False),
        ("22:00-06:00", "2026-12-02 22:00", True),
        ("22:00-06:00", "2026-12-03 05:59", True),
        ("22:00-06:00", "2026-12-03 06:00", False),
        ("Sat 22:00-06:00", "2026-12-05 05:00", False),  # the night from Friday
        ("Sat 22:00-06:00", "2026-12-05 23:00", True),
        ("Sat 22:00-06:00", "2026-12-06 05:00", True),
        ("Sun 22:00-06:00", "2026-12-07 01:00", True),  # over the end of the week
        ("Sat-Mon 02:00-03:00", "2026-12-06 02:30", True),
        ("Sat-Mon 02:00-03:00", "2026-12-08 02:30", False),
        ("Mon-Fri,Sun 00:00-24:00", "2026-12-05 12:00", False),
        ("Mon-Fri,Sun 00:00-24:00", "2026-12-06 23:59", True),
        ("Mon-Fri,Sun 00:00-24:00", "2026-12-04 23:59", True),
        (["Sat 02:00-03:00", "Sun 04:00-05:00"], "2026-12-06 04:30", True),
        (["Sat 02:00-03:00", "Sun 04:00-05:00"], "2026-12-06 02:30", False),
        ([], "2026-12-06 02:30", True),
    ],
)
def test_a_window_is_open(window: str | list[str], moment: str, is_open: bool) -> None:
    assert open_at(window, moment) is is_open


def test_an_hour_that_comes_twice_is_open_twice() -> None:
    # The night of 25 October 2026: 02:00-03:00 is there in summer time, and again in winter time.
    window = [parse_window("02:00-03:00")]
    minutes = [datetime(2026, 10, 24, 22, tzinfo=UTC) + timedelta(minutes=minute) for minute in range(8 * 60)]
    assert sum(in_window(window, minute.astimezone(BERLIN)) for minute in minutes) == 120


def test_an_hour_that_is_left_out_does_not_open() -> None:
    # The night of 29 March 2026: 02:00-03:00 is not there.
    window = [parse_window("02:00-03:00")]
    assert next_opening(window, at("2026-03-28 12:00"), BERLIN) == at("2026-03-30 02:00")
    assert next_opening([parse_window("Sun 02:00-03:00")], at("2026-03-28 12:00"), BERLIN) == at("2026-04-05 02:00")
    # One that begins in it opens behind it.
    assert next_opening([parse_window("02:30-05:00")], at("2026-03-28 12:00"), BERLIN) == at("2026-03-29 03:00")


@given(texts, moments)
def test_the_next_opening_is_the_first_open_minute(text: str, moment: datetime) -> None:
    windows = [parse_window(text)]
    now = moment.replace(tzinfo=BERLIN).astimezone(UTC)
    opens = next_opening(windows, now, BERLIN)
    assert in_window(windows, opens)
    assert opens >= now
    before = opens.astimezone(UTC) - timedelta(minutes=1)
    assert before < now or not in_window(windows, before.astimezone(BERLIN))
    step = now
    while step < min(opens, now + timedelta(days=2)):
        assert not in_window(windows, step.astimezone(BERLIN))
        step += timedelta(minutes=30)


@given(texts)
def test_a_window_ends_behind_its_start(text: str) -> None:
    window = parse_window(text)
    assert 0 <= window.start < window.end <= window.start + 24 * 60
    assert window.days <= set(range(len(DAYS)))


def test_days_are_read() -> None:
    assert parse_window("sat,Sun 1:00-2:00") == Window(frozenset({5, 6}), 60, 120)
    assert parse_window("Fri-Mon 01:00-02:00").days == {4, 5, 6, 0}


@pytest.mark.parametrize(
    "text",
    [
        *("", "night", "22:00", "22-06", "25:00-26:00", "22:60-23:00", "24:00-01:00", "01:00-01:00", "Xyz 01:00-02:00"),
        *("Saturday 01:00-02:00", "Mon- 01:00-02:00", ", 01:00-02:00", "01:00-02:00 Sat"),
    ],
)
def test_what_is_no_window_is_refused_with_a_fix(text: str) -> None:
    with pytest.raises(SpecValueError) as caught:
        parse_window(text)
    assert caught.value.fix


@pytest.mark.parametrize("zero", [0x660, 0x966], ids=["Arabic", "Devanagari"])
@pytest.mark.parametrize("plain", ["09:00-17:00", "Sat 09:00-17:00"])
def test_digits_of_another_script_are_told_with_the_plain_ones(zero: int, plain: str) -> None:
    text = plain.translate({ord("0") + digit: zero + digit for digit in range(10)})
    with pytest.raises(SpecValueError, match="has digits other than 0 to 9") as told:
        parse_window(text)
    assert told.value.fix == f"write {plain}"
