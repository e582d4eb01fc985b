"""The table of terms below a bar: MiB by service, their sum, and the share of what is used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from rich.markup import escape

from llamarig.cli.context import out
from llamarig.cli.plan_view.basis import KEYS, PROCESS_PARTS, bracketed, process_parts
from llamarig.cli.rows import print_rows, width_of

INDENT = 2

Services = Mapping[str, Mapping[str, float]]
"""MiB by service and term."""
Told = Callable[[str, tuple[str, ...]], str]
"""How a term of some services is known; empty when it follows from header and settings."""
_NO_DETAIL: Services = MappingProxyType({})


def show_terms(services: Services, basis: Told, detail: Services = _NO_DETAIL) -> None:
    """MiB of each term and service, their sum and its share of what is used."""
    terms = list(dict.fromkeys(term for held in services.values() for term in held))
    used = sum(sum(held.values()) for held in services.values())
    several = len(services) > 1
    head = ["MiB", *(escape(name) for name in services), *(["sum"] if several else []), "share"]
    rows = [head]
    for term in sorted(terms, key=list(KEYS).index):
        mine = tuple(name for name, held in services.items() if term in held)
        parts = process_parts(services, detail) if term == "process" else ()
        rows.append(_row(_named(term, "" if parts else basis(term, mine)), services, term, used))
        for part in parts:
            told = basis(term, mine) if part == "base" else ""
            held = {name: {key: mib for key, mib in detail.get(name, {}).items() if mib} for name in services}
            rows.append(_row(f"    {PROCESS_PARTS[part]}{bracketed(told)}", held, part, None))
    sums = {name: {"sum": sum(held.values())} for name, held in services.items()}
    if len(terms) > 1 or several:
        rows.append(_row("  sum", sums, "sum", used))
    if several and out().is_terminal and width_of(rows, indent=INDENT) > out().width:
        print_rows([[row[0], *row[-2:]] for row in rows], indent=INDENT, right=True)
        _show_by_service(services)
    else:
        print_rows(rows, indent=INDENT, right=True)


def _named(term: str, told: str) -> str:
    return f"{KEYS.get(term, '?')} {term}{bracketed(told)}"


def _row(name: str, services: Services, term: str, used: float | None) -> list[str]:
    """One line of the table; no share where ``used`` is None."""
    figures = [held.get(term) for held in services.values()]
    total = sum(figure or 0.0 for figure in figures)
    cells = ["" if figure is None else f"{figure:,.2f}" for figure in figures]
    share = f"{total / used:.1%}" if used else ""
    return [name, *cells, *([f"{total:,.2f}"] if len(services) > 1 else []), share]


def _show_by_service(services: Services) -> None:
    """What each service takes, where the terminal has no room for a column each."""
    rows = []
    for name, held in services.items():
        parts = ", ".join(f"{KEYS.get(term, '?')} {mib:,.2f}" for term, mib in held.items())
        rows.append([escape(name), f"{sum(held.values()):,.2f} = {parts}"])
    print_rows([["by service", ""], *rows], indent=INDENT)
