"""What ``apply`` shows: the actions with reasons, progress while it runs, and what happened to each host."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from llamarig.cli.context import err, out
from llamarig.cli.host_error import complain
from llamarig.converge.explain import printable

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

    from llamarig.converge.apply import HostApply

_BAR = 16
"""Cells of a bar."""
_OF_ANSIBLE = "Validating arguments against arg spec"
"""A step of Ansible's own that says nothing to a user."""
_INSTALL = "Install the packages"
"""The step of the role base that downloads and installs."""
_QUIET_STEP = 0.25
"""Away from a terminal a long step is mentioned at every quarter."""


def describe(hosts: list[HostApply]) -> None:
    """Print what is to be done to each host, and why."""
    for host in hosts:
        if host.decision is None:
            continue
        out().print(f"[bold]{escape(host.host)}[/]: {_actions(len(host.decision.actions))}")
        for action in host.decision.actions:
            out().print(f"  [cyan]{action.kind:<10}[/] {escape(action.subject)}  [dim]{escape(action.reason)}[/]")


def say_refused(hosts: list[HostApply]) -> None:
    """Say which hosts are refused and why, before any other is touched; nothing when none is."""
    refused = [host for host in hosts if host.refused]
    for host in refused:
        for error in host.refused:
            complain(host.host, error, err())
    if refused:
        names = ", ".join(host.host for host in refused)
        err().print(f"[bold red]refused:[/] {escape(names)}; {_going_on(len(hosts) - len(refused))}", soft_wrap=True)


def _going_on(others: int) -> str:
    return f"nothing is touched there, and the other {'host is' if others == 1 else f'{others} hosts are'} gone on with"


def _actions(count: int) -> str:
    return f"{count} action{'' if count == 1 else 's'}"


def say_outcome(hosts: list[HostApply], keys: list[dict[str, str]], *, check: bool) -> None:
    """Print new keys, errors, and a line for each host."""
    for key in keys:
        out().print(
            f"[bold yellow]new key[/] for client {escape(key['client'])} of {escape(key['service'])} "
            f"on {escape(key['host'])}, shown once:"
        )
        out().print(escape(key["key"]), soft_wrap=True)
        if key["path"]:
            out().print(f"root finds it again in {escape(key['path'])} on {escape(key['host'])}", soft_wrap=True)
    for host in hosts:
        if host.error is not None and not host.refused:
            complain(host.host, host.error, err())
        out().print(f"{escape(host.host)}: {_line(host, check)} ({host.seconds:.1f} s)")


def _line(host: HostApply, check: bool) -> str:
    actions = len(host.decision.actions) if host.decision else 0
    if host.refused:
        return "[bold red]refused[/], nothing was touched"
    if host.error is not None:
        return "[bold red]failed[/]"
    if check and actions:
        return f"[yellow]{actions} to do[/], nothing was touched"
    if not host.converged:
        return "[green]nothing to do[/], 0 actions"
    good = sum(1 for check_ in host.checks if check_.get("ok"))
    return f"[green]done[/], {_actions(actions)}, {host.changed} changed, {good} of {len(host.checks)} checks passed"


class Progress:
    """Takes the events of a run: a live view on a terminal, a line for each step elsewhere (both on stderr)."""

    def __init__(self) -> None:
        self.keys: list[dict[str, str]] = []
        self.packages: dict[str, int] = {}
        """Packages that are to be installed, by host."""
        self._live = err().is_terminal
        self._bars: Bars | None = None
        self._rows: dict[str, TaskID] = {}
        self._said: dict[tuple[str, str], float] = {}
        self._started = time.monotonic()

    @property
    def rows(self) -> int:
        """Rows of the live view: one a host that did anything."""
        return len(self._rows)

    def __enter__(self) -> Progress:
        if self._live:
            from rich.progress import Progress as LiveBars
            from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn
            from rich.table import Column

            # The clock comes before what may be long, so that a narrow terminal keeps it.
            self._bars = LiveBars(
                SpinnerColumn(),
                TimeElapsedColumn(),
                TextColumn("[bold]{task.fields[host]}", table_column=Column(no_wrap=True)),
                TextColumn("{task.fields[amount]}", table_column=Column(no_wrap=True)),
                TextColumn("{task.description}", table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")),
                console=err(),
                expand=True,
                transient=True,
            )
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bars is not None:
            self._bars.stop()

    def __call__(self, event: dict[str, Any]) -> None:
        """One event (:mod:`llamarig.converge.events`)."""
        handler = {"key": self._key, "progress": self._progress, "start": self._start, "result": self._result}
        handler.get(str(event.get("event")), lambda _event: None)(event)

    def _key(self, event: dict[str, Any]) -> None:
        self.keys.append({name: str(event.get(name, "")) for name in ("host", "service", "client", "key", "path")})

    def _start(self, event: dict[str, Any]) -> None:
        host, task = str(event.get("host")), str(event.get("task"))
        if task.startswith(_OF_ANSIBLE):
            return
        if task == _INSTALL and self.packages.get(host):
            task = f"downloading and installing {_packages(self.packages[host])}"
        self._show(host, task, 0, 0, "")

    def _progress(self, event: dict[str, Any]) -> None:
        done, total = float(event.get("done") or 0), float(event.get("total") or 0)
        self._show(str(event.get("host")), str(event.get("label")), done, total, str(event.get("unit") or ""))

    def _result(self, event: dict[str, Any]) -> None:
        result = event.get("result")
        if isinstance(result, dict) and result.get("taken_over"):
            who = result.get("holder") or {}
            by = f"{who.get('who')} on {who.get('from')}" if isinstance(who, dict) else "somebody"
            self._say(str(event.get("host")), f"took over the lock of {by}: {result['taken_over']}")
        if not self._live and event.get("status") in {"changed", "failed", "unreachable"}:
            self._say(str(event.get("host")), f"{event.get('task')}: {event.get('status')}")

    def _show(self, host: str, label: str, done: float, total: float, unit: str) -> None:
        label = printable(label)[:60]
        if self._bars is None:
            self._quiet(host, label, done, total, unit)
            return
        if host not in self._rows:
            self._rows[host] = self._bars.add_task("", total=None, host=escape(printable(host)), amount="")
        self._bars.update(
            self._rows[host],
            description=escape(label),
            completed=done,
            total=total or None,
            amount=bar(done, total, unit),
        )

    def _quiet(self, host: str, label: str, done: float, total: float, unit: str) -> None:
        if not total:
            return
        share = done / total
        if share >= 1 or share >= self._said.get((host, label), -1.0) + _QUIET_STEP:
            self._said[host, label] = share
            self._say(host, f"{label} {amount(done, total, unit)}")

    def _say(self, host: str, text: str) -> None:
        err().print(
            f"{time.monotonic() - self._started:7.1f}s {escape(printable(host))}: {escape(printable(text))}",
            soft_wrap=True,
        )


def _packages(count: int) -> str:
    return f"{count} package{'' if count == 1 else 's'}"


def bar(done: float, total: float, unit: str) -> str:
    """A short bar and the amount; nothing when the total is not known."""
    if not total:
        return ""
    filled = round(_BAR * min(1.0, done / total))
    return f"[green]{'━' * filled}[/][dim]{'━' * (_BAR - filled)}[/] {amount(done, total, unit)}"


def amount(done: float, total: float, unit: str) -> str:
    """``120/400 steps``, or ``93.8/93.8 MiB`` for bytes; nothing when the total is not known."""
    if not total:
        return ""
    if unit == "bytes":
        return f"{done / 2**20:.1f}/{total / 2**20:.1f} MiB"
    return f"{done:.0f}/{total:.0f} {unit}".rstrip()
