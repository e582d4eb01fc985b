"""A rollout while it goes on: a live table on a terminal, a line for every news elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from rich.text import Text

from llamarig.compare.text import counted, printable
from llamarig.fleet.rollout.state import FAILED, OBSERVING, PENDING, ROLLED_BACK, HostState, State, Wave
from llamarig.fleet.view.words import (
    ACTIVE,
    GOOD,
    Tone,
    active,
    budget_words,
    host_words,
    ordered,
    phase_words,
    shown_phases,
    status_words,
    wave_words,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live

COLOURS: dict[Tone, str] = {"good": "green", "thin": "yellow", "bad": "bold red", "work": "cyan", "soft": "dim"}
_A_SECOND = 4
"""Refreshes."""
_AROUND = 5
"""Lines of the screen that are no host's: head, foot, the prompt that comes back."""
_NAME = 30
_LOOK, _SEEN, _WOKEN, _NEXT = "is looked at", "was looked at", "is woken", "waits"
_AWAITED = frozenset({_LOOK, _WOKEN})
_OF_ANSIBLE = "Validating arguments against arg spec"
"""A step of Ansible's own that says nothing to a user."""


class RolloutView:
    """Takes every new state and Ansible's events, and shows them on ``console``; ``on_key`` gets new API keys."""

    def __init__(self, console: Console, on_key: Callable[[dict[str, Any]], None] | None = None) -> None:
        self._console, self._on_key = console, on_key
        self._state = State()
        self._steps: dict[str, str] = {}
        """What is being done on a host right now."""
        self._since: dict[str, float] = {}
        """When a host came to its phase."""
        self._waking: set[str] = set()
        """Hosts that are woken: the look at all begins when the last of them answers, or is given up."""
        self._answered: set[str] = set()
        """Hosts that are looked at together with others, and have answered."""
        self._phases: dict[str, str] = {}
        self._wave = self._status = ""
        self._live: Live | None = None
        self._started = time.monotonic()

    def __enter__(self) -> RolloutView:
        if self._console.is_terminal:
            from rich.live import Live  # noqa: PLC0415 - only a terminal needs it

            self._live = Live(
                get_renderable=self.screen,
                console=self._console,
                refresh_per_second=_A_SECOND,
                transient=True,
            )
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def event(self, event: dict[str, Any]) -> None:
        """One event of a run (:mod:`llamarig.converge.events`)."""
        kind, host = event.get("event"), str(event.get("host"))
        if kind in ("start", "progress"):
            # It is asked something more: whether it is in use, say.
            self._answered.discard(host)
        if kind == "key" and self._on_key is not None:
            self._on_key(event)
        elif kind == "start" and not str(event.get("task")).startswith(_OF_ANSIBLE):
            self._steps[host] = printable(event.get("task"), 60)
        elif kind == "progress":
            self._steps[host] = _step(event)
        elif kind == "waking":
            self._waking.add(host)
        elif kind == "woken":
            self._waking.discard(host)
        elif kind == "result" and self._phases.get(host) == OBSERVING:
            self._answered.add(host)

    def known(self, state: State) -> None:
        """What a rollout is that is taken up again: none of it is news."""
        self._state, self._wave, self._status = state, state.wave, state.status
        self._phases = {name: host.phase for name, host in state.hosts.items()}

    def state(self, state: State) -> None:
        """The state after a record."""
        self._state = state
        now = time.monotonic()
        if state.wave != self._wave:
            self._wave = state.wave
            self._say(Text(printable(state.wave, _NAME), "bold"))
        for name, host in state.hosts.items():
            if self._phases.get(name, PENDING) != host.phase:
                self._phases[name], self._since[name] = host.phase, now
                self._steps.pop(name, None)
                self._answered.discard(name)
                if host.phase not in (PENDING, OBSERVING):
                    self._say(_line(name, host, host.phase))
        if state.status != self._status:
            self._status = state.status
            tone, words = status_words(state)
            why = f": {printable(state.reason)}" if state.reason else ""
            self._say(Text(f"{words}{why}", COLOURS[tone]))

    def _say(self, words: Text) -> None:
        """A line of the log; a terminal has the table instead."""
        if self._live is None:
            self._console.print(Text(f"{self._elapsed():7.1f}s ") + words, soft_wrap=True)

    def _elapsed(self) -> float:
        return time.monotonic() - self._started

    def screen(self) -> Text:
        """All that fits the terminal: the head, each wave, a line for each host that matters now, what is awaited."""
        state, width = self._state, self._console.width
        room = max(3, self._console.height - _AROUND)
        lines = list(self._waves(state, ordered(state)))
        if len(lines) > room:
            # What is over can be read afterwards.
            lines = list(self._waves(state, _from_now_on(state)))
        if len(lines) > room:
            cut = len(lines) - room + 1
            lines = [*lines[: room - 1], Text(f"  and {cut} lines more; `llamarig rollout status` has all", "dim")]
        shown = [self._head(state), *lines, self._foot(state)]
        for line in shown:
            line.truncate(width - 1, overflow="ellipsis")
        return Text("\n").join(shown)

    def _head(self, state: State) -> Text:
        tone, words = status_words(state)
        done = sum(1 for host in state.hosts.values() if host.phase in GOOD)
        minutes, seconds = divmod(int(self._elapsed()), 60)
        head = Text(f"{minutes}:{seconds:02} ") + Text(words, COLOURS[tone])
        budget = state.budget
        style = "bold red" if budget["used"] > budget["allowed"] else "yellow" if budget["used"] else ""
        return head + Text(f"  {done} of {counted(len(state.hosts), 'host')} done  ") + Text(budget_words(state), style)

    def _foot(self, state: State) -> Text:
        busy = [name for name in active(state) if state.hosts[name].phase != OBSERVING or self._look(name) in _AWAITED]
        if not busy:
            return Text("nothing is awaited", "dim")
        named = ", ".join(printable(name, _NAME) for name in busy[:3])
        more = f" and {len(busy) - 3} more" if len(busy) > 3 else ""  # noqa: PLR2004 - those named
        return Text(f"waiting for {named}{more}", "dim")

    def _look(self, name: str) -> str:
        """How far the look at a host is, which is made at all at once."""
        if self._waking:
            return _WOKEN if name in self._waking else _NEXT
        return _SEEN if name in self._answered else _LOOK

    def _waves(self, state: State, waves: Sequence[Wave]) -> Iterator[Text]:
        phases = shown_phases(state)
        for wave in waves:
            yield _heading(wave, state)
            hosts = [name for name in wave.hosts if name in state.hosts]
            now = wave.name == state.wave or any(phases[name] in ACTIVE for name in hosts)
            for name in hosts:
                # Of a wave that is over what went well needs no line, and of one that is to come what waits.
                if now or phases[name] not in (*GOOD, PENDING):
                    yield self._host(name, state.hosts[name], phases[name])

    def _host(self, name: str, host: HostState, phase: str) -> Text:
        look = self._look(name) if phase == OBSERVING else ""
        line = Text("  ") + _line(name, host, phase, pad=True, look=look)
        if phase in ACTIVE and (not look or look in _AWAITED):
            line += Text(f" {time.monotonic() - self._since.get(name, self._started):.0f} s", "dim")
            if step := self._steps.get(name):
                line += Text(f"  {step}")
        elif host.seconds is not None:
            line += Text(f"  {host.seconds:.1f} s", "dim")
        return line


def _heading(wave: Wave, state: State) -> Text:
    bad = any(state.hosts[name].phase in (FAILED, ROLLED_BACK) for name in wave.hosts if name in state.hosts)
    name = printable(wave.name, _NAME)
    return Text(name, "bold") + Text(f"  {wave_words(wave, state)}", "bold red" if bad else "dim")


def _from_now_on(state: State) -> list[Wave]:
    """The waves from the one that was begun last."""
    waves = ordered(state)
    names = [wave.name for wave in waves]
    return waves[names.index(state.wave) :] if state.wave in names else waves


def _line(name: str, host: HostState, phase: str, *, pad: bool = False, look: str = "") -> Text:
    tone, words = phase_words(phase)
    if look:
        tone, words = "work" if look in _AWAITED else "soft", look
    shown = printable(name, _NAME)
    lead = f"{shown:<16} " if pad else f"{shown}: "
    said = host_words(host)
    coloured = Text(f"{words:<13} " if pad else words, COLOURS[tone])
    between = "" if pad or not said else ", "
    return Text(lead) + coloured + Text(f"{between}{said}")


def _step(event: dict[str, Any]) -> str:
    label = printable(event.get("label"), 60)
    done, total = event.get("done"), event.get("total")
    if isinstance(done, int | float) and isinstance(total, int | float) and total > 0:
        return f"{label} {min(100.0, 100 * done / total):.0f}%"
    return label
