"""Drift on a terminal: the fleet in a line, what several hosts have in common, then host by host."""

from __future__ import annotations

from collections.abc import Sequence

from rich.markup import escape

from llamarig.cli.context import out
from llamarig.cli.host_error import complain
from llamarig.cli.rows import print_hanging, print_rows
from llamarig.fleet.drift.fleet import MOST, Shared, counts, own, shared
from llamarig.fleet.drift.host import Difference, HostDrift
from llamarig.fleet.drift.since import Since
from llamarig.fleet.drift.words import difference_words, record_words, since_words, summary_words

_NAMED = 40
"""Hosts that are named in one line; the rest are counted."""


def show(found: Sequence[HostDrift]) -> None:
    """Print the drift of one host, or that of a fleet."""
    if len(found) == 1:
        _show_host(found[0], (), alone=True)
        return
    _show_summary(found)
    groups = shared(found)
    for number, group in enumerate(groups, 1):
        _show_shared(number, group)
    if groups:
        out().print()
    for host in sorted(found, key=lambda each: bool(own(each, groups))):
        if host.differences:
            _show_host(host, groups)


def complain_of(found: Sequence[HostDrift]) -> None:
    """The errors of those that could not be looked at, on standard error."""
    for host in found:
        if host.error is not None:
            complain(host.host, host.error)


def _show_summary(found: Sequence[HostDrift]) -> None:
    sums = counts(found)
    colour = "green" if sums.as_specified == sums.hosts else "bold red"
    out().print(f"[{colour}]{escape(summary_words(sums))}[/]", soft_wrap=True)
    for label, names in (
        ("as specified", [host.host for host in found if host.error is None and not host.differences]),
        ("differ", [host.host for host in found if host.differences]),
        ("not looked at", [host.host for host in found if host.error is not None]),
    ):
        if names:
            print_hanging(f"{label}: {escape(_names(names))}", indent=2, hang=2)


def _names(hosts: Sequence[str]) -> str:
    more = f" and {len(hosts) - _NAMED} more" if len(hosts) > _NAMED else ""
    return ", ".join(hosts[:_NAMED]) + more


def _show_shared(number: int, group: Shared) -> None:
    out().print()
    print_hanging(f"[bold]\\[{number}] on {len(group.hosts)} hosts[/]: {escape(_names(group.hosts))}", hang=4)
    _show_rows([(group.difference, group.since)])


def _show_host(host: HostDrift, groups: Sequence[Shared], *, alone: bool = False) -> None:
    if host.error is not None:
        return
    name = escape(host.host)
    if not host.differences:
        out().print(f"{name}: [green]as its spec says[/]")
        return
    count = len(host.differences)
    lead = f"{name}: [bold red]{count} {'difference' if count == 1 else 'differences'}[/]"
    mine = {each.same for each in host.differences}
    told = [f"\\[{number}]" for number, group in enumerate(groups, 1) if group.difference.same in mine]
    rest = own(host, groups)
    if rest and not alone:
        out().print()
    also = f", {'some' if rest else 'all'} as on other hosts: {' '.join(told)}" if told else ""
    print_hanging(f"{lead}{also}  [dim]{escape(record_words(host.record or {}))}[/]", hang=4)
    _show_rows([(each, each.since) for each in rest])


def _show_rows(rows: Sequence[tuple[Difference, Since]]) -> None:
    """A difference a row; since when it is so stands below it on a terminal, behind it elsewhere."""
    cells: list[list[str]] = []
    for each, since in rows[:MOST]:
        name, words = escape(f"{each.action.kind} {each.action.subject}"), escape(difference_words(each.action))
        when = escape(since_words(since))
        if not out().is_terminal:
            cells.append([name, "; ".join(filter(None, [words, when]))])
            continue
        cells += [[name, words], ["", f"[dim]{when}[/]"]] if when else [[name, words]]
    if len(rows) > MOST:
        cells.append(["", f"[dim]and {len(rows) - MOST} more, which --json shows[/]"])
    print_rows(cells, indent=2)
