"""What ``rollout`` shows: a line for each host whenever something happens to it, and the whole at the end."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from rich.markup import escape

from llamarig.cli.context import err, out
from llamarig.cli.rows import print_rows
from llamarig.compare.text import printable
from llamarig.fleet.rollout.state import HostState, State

_COLOURS = {
    "done": "green",
    "nothing-to-do": "green",
    "failed": "bold red",
    "rolled-back": "red",
    "unreachable": "yellow",
    "deferred": "yellow",
}
_QUIET = {"pending", "observing"}


class Lines:
    """Takes states and Ansible's events; says what is new on standard error."""

    def __init__(self) -> None:
        self._phases: dict[str, str] = {}
        self._wave = ""

    def __enter__(self) -> Lines:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def event(self, event: dict[str, Any]) -> None:
        """One event of Ansible: new keys are shown once, like ``apply`` does."""
        if event.get("event") == "key":
            client, service, host = (str(event.get(name)) for name in ("client", "service", "host"))
            err().print(f"[bold yellow]new key[/] for client {escape(client)} of {escape(service)} on {escape(host)}:")
            err().print(escape(str(event.get("key"))), soft_wrap=True)

    def state(self, told: State) -> None:
        """The state after a record."""
        if told.wave != self._wave:
            self._wave = told.wave
            err().print(f"[bold]{escape(told.wave)}[/]")
        for name, host in told.hosts.items():
            if self._phases.get(name, "pending") != host.phase:
                self._phases[name] = host.phase
                if host.phase not in _QUIET:
                    err().print(f"  {escape(name)}: {phase(host)} {escape(detail(host))}".rstrip(), soft_wrap=True)


def phase(host: HostState) -> str:
    """The phase, coloured."""
    colour = _COLOURS.get(host.phase)
    return f"[{colour}]{host.phase}[/]" if colour else host.phase


def detail(host: HostState) -> str:
    """What is to be said beside the phase."""
    if host.reason:
        return printable(host.reason.partition("\n")[0], 300)
    words = []
    if host.actions and host.phase in ("applying", "done"):
        words.append(f"{host.actions} action{'' if host.actions == 1 else 's'}")
    if host.checks:
        words.append(f"{host.checks.get('passed')} of {host.checks.get('of')} checks passed")
    if host.seconds is not None and host.phase != "applying":
        words.append(f"{host.seconds:.1f} s")
    return ", ".join(words)


def say(told: State, driver: dict[str, Any] | None) -> None:
    """The whole rollout on standard output."""
    status = told.status if driver or told.status not in ("running", "rolling-back") else f"{told.status}, cut off"
    why = f": {printable(told.reason, 300)}" if told.reason else ""
    out().print(f"[bold]{escape(told.id)}[/]  {status}{escape(why)}")
    if driver:
        out().print(
            f"  driven by {escape(str(driver['who']))} on {escape(str(driver['from']))}, process {driver['pid']}"
        )
    budget = told.budget
    out().print(f"  {budget['used']} failed, {budget['allowed']} allowed")
    for wave in told.waves:
        out().print(f"  {escape(wave.name)}")
        rows = [[escape(name), phase(told.hosts[name]), escape(detail(told.hosts[name]))] for name in wave.hosts]
        print_rows(rows, indent=4)
