"""What ``gc`` shows: what goes, what stays and why, and what became of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.markup import escape

from llamarig.cli.context import err, out
from llamarig.cli.host_error import complain
from llamarig.cli.rows import print_rows
from llamarig.compare.text import counted, printable

if TYPE_CHECKING:
    from llamarig.converge.gc import HostGc

_LINKS = "link"
"""Too many and too small to be worth a row each where they stay."""


def size(count: int) -> str:
    """``16.5 GiB``, ``12.0 MiB``, ``4 KiB``."""
    units = ((2**30, ".1f", "GiB"), (2**20, ".1f", "MiB"), (2**10, ".0f", "KiB"))
    unit, form, name = next((each for each in units if count >= each[0]), units[-1])
    return f"{count / unit:{form}} {name}"


def describe(host: HostGc) -> None:
    """Print what goes from a host and what stays, each with its size and why."""
    if host.error is not None:
        return
    total = f"{counted(len(host.gone), 'thing')}, {size(host.bytes)}" if host.gone else "nothing"
    out().print(f"[bold]{escape(host.host)}[/]: {total} may go", soft_wrap=True)
    print_rows([_row(each, "yellow") for each in host.gone], indent=2)
    stays = [each for each in host.kept if each["kind"] != _LINKS]
    if stays:
        out().print("  stays:")
        print_rows([_row(each, "green") for each in stays], indent=4)
    if host.unknown:
        out().print("  none of llamarig's own, left alone:")
        rows = [
            [escape(printable(each["path"], 400)), f"[dim]{escape(printable(each['what']))}[/]"]
            for each in host.unknown
        ]
        print_rows(rows, indent=4)


def _row(thing: dict[str, Any], colour: str) -> list[str]:
    kind, path = escape(printable(thing["kind"])), escape(printable(thing["path"], 400))
    amount = size(thing["bytes"]) if thing["bytes"] else "-"
    return [f"[{colour}]{kind}[/]", f"{amount:>10}", path, f"[dim]{escape(printable(thing['reason'], 300))}[/]"]


def say_outcome(hosts: list[HostGc], *, check: bool) -> None:
    """Print errors, what stayed after all, and a line for each host."""
    for host in hosts:
        for each in host.left:
            said = f"{each['path']} stayed: {each['reason']}"
            err().print(f"[yellow]{escape(host.host)}: {escape(printable(said, 600))}[/]", soft_wrap=True)
        if host.error is not None:
            complain(host.host, host.error, err())
        out().print(f"{escape(host.host)}: {_line(host, check)} ({host.seconds:.1f} s)")


def _line(host: HostGc, check: bool) -> str:
    if host.error is not None:
        freed = f", {size(host.bytes)} freed before that" if host.removed else ""
        return f"[bold red]failed[/]{freed if host.begun else ', nothing was removed'}"
    if host.removed:
        return f"[green]{counted(len(host.gone), 'thing')} removed[/], {size(host.bytes)} freed"
    if host.gone and check:
        return f"[yellow]{size(host.bytes)} to free[/], nothing was touched"
    return "[green]nothing to remove[/]" if not host.left else "[yellow]nothing was removed[/]"
