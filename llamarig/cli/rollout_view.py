"""What ``rollout`` says at the end: every host by its wave. While it goes on llamarig.fleet.view shows it."""

from __future__ import annotations

from typing import Any

from rich.markup import escape

from llamarig.cli.context import err, out
from llamarig.cli.rows import print_rows
from llamarig.compare.text import counted, printable
from llamarig.fleet.rollout.control import PAUSE
from llamarig.fleet.rollout.state import AT_WORK, PAUSED, HostState, State
from llamarig.fleet.view.words import counts_words

_NAMED = 5
"""Hosts that a line names."""
_COLOURS = {
    "done": "green",
    "nothing-to-do": "green",
    "failed": "bold red",
    "rolled-back": "red",
    "unreachable": "yellow",
    "deferred": "yellow",
    "refused": "bold red",
}


def show_key(event: dict[str, Any]) -> None:
    """A new key is shown once, like ``apply`` does."""
    client, service, host = (str(event.get(name)) for name in ("client", "service", "host"))
    err().print(f"[bold yellow]new key[/] for client {escape(client)} of {escape(service)} on {escape(host)}:")
    err().print(escape(str(event.get("key"))), soft_wrap=True)


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
        words.append(counted(host.actions, "action"))
    if host.checks:
        words.append(f"{host.checks.get('passed')} of {host.checks.get('of')} checks passed")
    if host.seconds is not None and host.phase != "applying":
        words.append(f"{host.seconds:.1f} s")
    return ", ".join(words)


def say_asked(told: State, asked: str) -> None:
    """On standard error: what a rollout was asked from aside, and what it does about it."""
    if told.status == PAUSED:
        words = f"paused; llamarig rollout resume {told.id} goes on"
    elif not asked:
        words = "it has stopped meanwhile"
    else:
        busy = [name for name, host in told.hosts.items() if host.phase in AT_WORK]
        more = " …" if len(busy) > _NAMED else ""
        first = f"{', '.join(busy[:_NAMED])}{more} finished first; then it stops" if busy else "no other host is begun"
        words = f"asked to {asked}: {first}, and " + (
            f"llamarig rollout resume {told.id} goes on" if asked == PAUSE else "nothing goes on from there"
        )
    err().print(escape(printable(words, 600)), soft_wrap=True)


def say(told: State, driver: dict[str, Any] | None, asked: str = "") -> None:
    """The whole rollout on standard output; ``asked`` is what somebody wants of it and it has not done yet."""
    status = told.status if driver or told.status not in ("running", "rolling-back") else f"{told.status}, cut off"
    status += f", asked to {asked}" if asked else ""
    why = f": {printable(told.reason, 300)}" if told.reason else ""
    out().print(f"[bold]{escape(told.id)}[/]  {status}{escape(why)}")
    if driver:
        out().print(
            f"  driven by {escape(str(driver['who']))} on {escape(str(driver['from']))}, "
            f"process {escape(str(driver['pid']))}"
        )
    budget = told.budget
    out().print(f"  {budget['used']} failed, {budget['allowed']} allowed")
    for wave in told.waves:
        out().print(f"  {escape(wave.name)}")
        rows = [[escape(name), phase(told.hosts[name]), escape(detail(told.hosts[name]))] for name in wave.hosts]
        print_rows(rows, indent=4)
    if told.hosts:
        out().print(f"  {counted(len(told.hosts), 'host')}: {escape(counts_words(told))}")
