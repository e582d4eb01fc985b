"""A rollout as people see it: on a terminal, in a log, and on a page; whatever hosts say stays text."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from llamarig.fleet.rollout.state import State
from llamarig.fleet.view import RolloutView, page
from llamarig.fleet.view.words import active, budget_words, counts_words, host_words, shown_phases, wave_words

HOSTS = ["ws-1", "ws-2", "ws-3", "ws-4", "ws-5"]
OLD, NEW = "4df29be4f-000000000000", "5ab0c1d2e-111111111111"
HOSTILE = "<script>alert(1)</script> \x1b[2J \u202e &amp; '\""


def started(**policy: Any) -> dict[str, Any]:
    waves = [
        {"name": "canary", "hosts": HOSTS[:1]},
        {"name": "wave 1", "hosts": HOSTS[1:3]},
        {"name": "wave 2", "hosts": HOSTS[3:]},
    ]
    hosts = {name: {"to-release": NEW} for name in HOSTS}
    return {
        "event": "rollout-started",
        "id": "20261201T010000Z-ab12cd34",
        "at": "2026-12-01T01:00:00Z",
        "by": "anna@desk",
        "policy": {"failures": 1} | policy,
        "waves": waves,
        "hosts": hosts,
        "options": {},
    }


def host(name: str, phase: str, **words: Any) -> dict[str, Any]:
    return {
        "event": "host",
        "host": name,
        "phase": phase,
        **{key.replace("_", "-"): each for key, each in words.items()},
    }


def records() -> list[dict[str, Any]]:
    """The canary is done, one of the first wave was rolled back, another is being changed; the others wait."""
    return [
        started(),
        *(host(name, "observing") for name in HOSTS),
        {"event": "wave", "name": "canary"},
        host("ws-1", "applying", actions=4, from_release=OLD),
        host("ws-1", "done", seconds=71.25, to_release=NEW, checks={"passed": 11, "of": 11, "failed": []}),
        {"event": "wave", "name": "wave 1"},
        host("ws-2", "applying", actions=1),
        host("ws-3", "applying", actions=4),
        host("ws-2", "rolled-back", reason=HOSTILE, failed=True, checks={"passed": 9, "of": 10, "failed": [HOSTILE]}),
    ]


@pytest.fixture
def state() -> State:
    return State.fold(records())


def test_a_host_that_was_looked_at_waits_for_its_turn(state: State) -> None:
    assert shown_phases(state) == {
        "ws-1": "done",
        "ws-2": "rolled-back",
        "ws-3": "applying",
        "ws-4": "pending",
        "ws-5": "pending",
    }
    assert active(state) == ["ws-3"]
    survey = State.fold(records()[:6])
    assert active(survey) == HOSTS
    survey.add({"event": "wave", "name": "wave 1"})
    assert active(survey) == ["ws-2", "ws-3"]
    survey.add({"event": "paused"})
    assert active(survey) == []


def test_the_words(state: State) -> None:
    assert counts_words(state) == "2 waits, 1 is changed, 1 done, 1 rolled back"
    assert budget_words(state) == "1 failed, 1 allowed"
    assert wave_words(state.waves[1], state) == "0 of 2 done, 1 rolled back"
    assert host_words(state.hosts["ws-1"]) == f"4 actions, 11 of 11 checks passed, release {OLD} -> {NEW}"
    state.add(host("ws-3", "failed", failed=True))
    assert budget_words(state) == "2 failed, 1 allowed; no other host is begun"


def console(*, terminal: bool, width: int = 100, height: int = 30) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=width, height=height, color_system=None)


def text_of(view: RolloutView) -> list[str]:
    return view.screen().plain.split("\n")


def test_the_screen_has_a_line_for_each_host_that_matters(state: State) -> None:
    view = RolloutView(console(terminal=True))
    view.state(state)
    view.event({"event": "start", "host": "ws-3", "task": "Start the services"})
    lines = text_of(view)
    assert lines[0].endswith("running  1 of 5 hosts done  1 failed, 1 allowed")
    assert [line.split()[0] for line in lines[1:]] == ["canary", "wave", "ws-2", "ws-3", "wave", "waiting"]
    assert lines[4].endswith("0 s  Start the services")
    assert lines[-1] == "waiting for ws-3"
    view.event({"event": "progress", "host": "ws-3", "label": "Compile", "done": 3, "total": 4, "unit": "steps"})
    assert text_of(view)[4].endswith("Compile 75%")


def test_a_reboot_is_shown_while_it_is_made_and_a_host_that_waits_for_one_says_what_to_do(state: State) -> None:
    needed = "module 550 is loaded, wanted 610"
    state.add(host("ws-3", "rebooting", reason=needed, reboot="begun"))
    assert (active(state), state.hosts["ws-3"].between) == (["ws-3"], True)
    view = RolloutView(console(terminal=True))
    view.state(state)
    (line,) = [each for each in text_of(view) if "ws-3" in each and "waiting" not in each]
    assert line.split()[:3] == ["ws-3", "is", "rebooted"]
    assert needed in line
    assert text_of(view)[-1] == "waiting for ws-3"
    assert f"is rebooted</td><td>{needed}</td>" in page(state)
    why = f"a reboot is needed ({needed}), and not now: kim is logged in; resume later"
    state.add(host("ws-3", "deferred", reason=why, between=True, reboot="waits"))
    assert host_words(state.hosts["ws-3"]) == why
    assert active(state) == []


def test_a_host_that_has_answered_is_not_awaited_any_more() -> None:
    view = RolloutView(console(terminal=True))
    view.state(State.fold([started(), *(host(name, "observing") for name in HOSTS)]))
    assert text_of(view)[-1] == "waiting for ws-1, ws-2, ws-3 and 2 more"
    for name in HOSTS[1:]:
        view.event({"event": "result", "host": name, "action": "rig_observe", "status": "ok"})
    assert text_of(view)[-1] == "waiting for ws-1"
    assert [view._look(name) for name in HOSTS[:2]] == ["is looked at", "was looked at"]
    view.event({"event": "progress", "host": "ws-2", "label": "Wait for requests", "done": 1, "total": 0})
    assert text_of(view)[-1] == "waiting for ws-1, ws-2"
    again = State.fold([started(), *(host(name, "pending") for name in HOSTS)])
    view.state(again)
    view.state(State.fold([started(), *(host(name, "observing") for name in HOSTS)]))
    assert text_of(view)[-1].endswith("2 more")


def test_while_sleepers_are_woken_they_alone_are_awaited() -> None:
    state = State.fold([started(), *(host(name, "observing") for name in HOSTS), {"event": "wave", "name": "canary"}])
    view = RolloutView(console(terminal=True))
    view.state(state)
    view.event({"event": "waking", "host": "ws-1"})
    lines = text_of(view)
    assert lines[-1] == "waiting for ws-1"
    assert any(line.split()[:3] == ["ws-1", "is", "woken"] for line in lines)
    view.event({"event": "woken", "host": "ws-1"})
    assert any(line.split()[:3] == ["ws-1", "is", "looked"] for line in text_of(view))


def test_no_host_steers_the_terminal(state: State) -> None:
    view = RolloutView(console(terminal=True))
    view.state(state)
    view.event({"event": "start", "host": "ws-3", "task": HOSTILE})
    view.event({"event": "progress", "host": "ws-3", "label": HOSTILE, "done": "x", "total": None})
    assert all(line.isprintable() for line in text_of(view))


def test_the_screen_fits_a_small_terminal() -> None:
    names = [f"host-{number}" for number in range(200)]
    waves = [{"name": f"wave {at + 1}", "hosts": names[at * 50 : at * 50 + 50]} for at in range(4)]
    state = State.fold([started() | {"waves": waves, "hosts": {name: {} for name in names}}])
    state.add({"event": "wave", "name": "wave 2"})
    for name in names[50:100]:
        state.add(host(name, "applying", actions=3))
    view = RolloutView(console(terminal=True, width=40, height=12))
    view.state(state)
    lines = text_of(view)
    assert len(lines) <= 12
    assert all(len(line) < 40 for line in lines)
    assert lines[1].startswith("wave 2")
    assert "lines more" in lines[-2]


def test_a_live_terminal_leaves_nothing_behind(state: State) -> None:
    where = console(terminal=True)
    with RolloutView(where) as view:
        view.state(state)
        assert view.screen().plain
    assert "\x1b[2K" in where.file.getvalue()  # type: ignore[attr-defined] # a StringIO, made above


def test_elsewhere_every_news_is_a_line_once() -> None:
    where = console(terminal=False, width=80)
    state = State()
    with RolloutView(where) as view:
        for record in [*records(), {"event": "stopped", "reason": "2 failed, and 1 may"}]:
            state.add(record)
            view.state(state)
    lines = [line.partition("s ")[2] for line in where.file.getvalue().splitlines()]  # type: ignore[attr-defined] # a StringIO, made above
    assert lines[:3] == ["running", "canary", "ws-1: is changed, 4 actions"]
    assert [line.partition(",")[0] for line in lines[3:]] == [
        *("ws-1: done", "wave 1", "ws-2: is changed", "ws-3: is changed"),
        *(lines[7].partition(",")[0], "stopped: 2 failed"),
    ]
    assert lines[7].startswith("ws-2: rolled back, <script>")
    assert all(line.isprintable() for line in lines)


def test_what_was_so_before_it_was_taken_up_again_is_no_news(state: State) -> None:
    screen = console(terminal=False)
    with RolloutView(screen) as view:
        view.known(state)
        state.add(host("ws-3", "done", seconds=3.0, checks={"passed": 11, "of": 11, "failed": []}))
        view.state(state)
    (line,) = screen.file.getvalue().splitlines()  # type: ignore[attr-defined] # a StringIO, made above
    assert "ws-3: done, 4 actions" in line


def test_a_new_key_reaches_who_shows_it() -> None:
    keys: list[dict[str, Any]] = []
    view = RolloutView(console(terminal=False), keys.append)
    view.event({"event": "key", "host": "ws-1", "key": "k"})
    view.event({"event": "start", "host": "ws-1", "task": "x"})
    assert [key["key"] for key in keys] == ["k"]


class Parsed(HTMLParser):
    """Tags and attributes of a page, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_says_all_and_needs_nothing(state: State) -> None:
    made = page(state)
    parsed = Parsed(made)
    for words in (
        "Rollout 20261201T010000Z-ab12cd34",
        "anna@desk",
        "rolled back",
        "11 of 11",
        "71.2",
        OLD,
        NEW,
        *HOSTS,
    ):
        assert words in parsed.text
    assert {"script", "link", "img", "iframe", "object"}.isdisjoint(parsed.tags)
    assert not {name for name, _ in parsed.attributes} & {"src", "href", "onload", "onclick"}
    assert not re.search(r"https?:|url\(|@import", made)
    assert "default-src 'none'" in made


def test_what_a_host_says_stays_text_on_the_page(state: State) -> None:
    made = page(state)
    assert "<script>alert(1)</script>" in Parsed(made).text
    assert "\x1b" not in made
    assert "\u202e" not in made


texts = st.text(max_size=60) | st.sampled_from([HOSTILE, "</style><script>", '" onmouseover="x', "a\nb"])


@given(texts, texts, texts, st.sampled_from(["failed", "done", "deferred", "what-is-this"]))
def test_no_words_break_the_page_or_the_screen(name: str, reason: str, wave: str, phase: str) -> None:
    state = State()
    for record in (
        started() | {"waves": [{"name": wave, "hosts": [name]}], "hosts": {name: {"to-release": reason}}},
        {"event": "wave", "name": wave},
        host(name, phase, reason=reason, from_release=wave, checks={"passed": reason, "of": 3, "failed": [reason]}),
        {"event": "stopped", "reason": reason},
    ):
        state.add(record)
    parsed = Parsed(page(state))
    assert "script" not in parsed.tags
    assert {name for name, _ in parsed.attributes} <= set(_expected_attributes())
    view = RolloutView(console(terminal=True))
    view.state(state)
    assert all(line.isprintable() for line in text_of(view))


def _expected_attributes() -> Iterator[str]:
    yield from ("lang", "charset", "http-equiv", "content", "name", "class", "style", "role", "aria-label")


def test_a_host_outside_all_waves_is_shown() -> None:
    state = State.fold([started()])
    state.add(host("stray", "failed", reason="x", failed=True))
    assert "stray" in Parsed(page(state)).text
