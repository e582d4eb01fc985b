"""Rows of cells on standard output: no blanks at line ends, nothing folded that has no blanks in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.text import Text

_GAP = 2
_LEAST = 32
"""Columns below which a last cell gets lines of its own."""


def print_rows(rows: Sequence[Sequence[str]], *, indent: int = 0, right: bool = False) -> None:
    """Print rows of console markup in columns; ``right`` aligns all but the first to the right.

    Away from a terminal a row is a line, however long. On one, the last cell folds under itself, or
    under the row's other cells where too little room is left beside them. The other cells never fold.
    """
    from rich.text import Text

    from llamarig.cli.context import out

    cells = [[Text.from_markup(cell) for cell in row] for row in rows]
    if not cells:
        return
    # One long path must not push all other rows apart: it gets a line of its own.
    room = out().width - indent - _GAP - _LEAST if out().is_terminal and not right else None
    widths = [
        max((row[at].cell_len for row in cells if room is None or row[at].cell_len <= room), default=0)
        for at in range(len(cells[0]))
    ]
    for row in cells:
        _print_row(_lead(row[:-1], widths, indent, right), row[-1], widths[-1] if right else 0)
    out().file.flush()


def width_of(rows: Sequence[Sequence[str]], *, indent: int = 0) -> int:
    """Columns that rows of console markup need when no cell is folded."""
    from rich.text import Text

    cells = [[Text.from_markup(cell).cell_len for cell in row] for row in rows]
    widths = [max(row[at] for row in cells) for at in range(len(cells[0]))]
    return indent + sum(widths) + _GAP * (len(widths) - 1)


def print_records(head: Sequence[str], rows: Sequence[Sequence[str]], *, indent: int = 0) -> None:
    """A table with a head line; on a terminal that is too narrow for it, each row as a small list of its own."""
    from rich.markup import escape
    from rich.text import Text

    from llamarig.cli.context import out

    table = [[f"[bold]{escape(name)}[/]" for name in head], *rows]
    widths = [max(Text.from_markup(row[at]).cell_len for row in table) for at in range(len(head))]
    if not out().is_terminal or indent + sum(widths) + _GAP * (len(widths) - 1) <= out().width:
        print_rows(table, indent=indent)
        return
    for row in rows:
        out().print(" " * indent + "  ".join(row[:2]), soft_wrap=True)
        rest = ", ".join(f"{escape(name)} {cell}" for name, cell in zip(head[2:], row[2:], strict=True))
        print_rows([["", rest]], indent=indent + _GAP)


def _lead(row: Sequence[Text], widths: Sequence[int], indent: int, right: bool) -> Text:
    """All cells but the last, each padded to its column."""
    from rich.text import Text

    lead = Text(" " * indent)
    for at, cell in enumerate(row):
        blanks = " " * (widths[at] - cell.cell_len)
        lead.append_text(Text(blanks) + cell if right and at else cell + Text(blanks))
        lead.append(" " * _GAP)
    return lead


def _print_row(lead: Text, last: Text, width: int) -> None:
    """One row, its last cell aligned to the right of ``width`` columns or folded where it must be."""
    from rich.cells import cell_len
    from rich.text import Text

    from llamarig.cli.context import out

    line = lead + Text(" " * max(width - last.cell_len, 0)) + last
    line.rstrip()
    if not out().is_terminal or line.cell_len <= out().width:
        out().print(line, soft_wrap=True)
        return
    hang = lead.cell_len
    longest = max((cell_len(word) for word in last.plain.split()), default=0)
    if out().width - hang < max(_LEAST, longest):
        hang = len(lead.plain) - len(lead.plain.lstrip()) + 2 * _GAP
        lead.rstrip()
        if lead.plain:
            out().print(lead, soft_wrap=True)
        lead = Text(" " * hang)
    _print_folded(lead, last, hang)


def print_hanging(markup: str, *, indent: int = 0, hang: int = 4) -> None:
    """Print one line; on a terminal that is too narrow it folds, further lines ``hang`` columns more to the right."""
    from rich.text import Text

    from llamarig.cli.context import out

    text = Text.from_markup(" " * indent + markup)
    if out().is_terminal:
        lead, rest = text.divide([indent]) if indent else (Text(), text)
        _print_folded(lead, rest, indent + hang, first=indent)
    else:
        out().print(text, soft_wrap=True)


def _print_folded(lead: Text, rest: Text, hang: int, first: int | None = None) -> None:
    """``rest`` behind ``lead``, folded; it begins at column ``first``, and at ``hang`` on further lines."""
    from rich.text import Text

    from llamarig.cli.context import out

    for part in _folded(rest, out().width - hang, out().width - (hang if first is None else first)):
        shown = lead + part
        shown.rstrip()
        out().print(shown, soft_wrap=True)
        lead = Text(" " * hang)


def _folded(cell: Text, width: int, room: int) -> list[Text]:
    """The cell in lines of at most ``width`` columns, the first of ``room``, cut at blanks only: a path stays whole."""
    import re

    from rich.cells import cell_len

    cuts, used = [], 0
    for word in re.finditer(r"\S+\s*", cell.plain):
        if used and used + cell_len(word[0].rstrip()) > room:
            cuts.append(word.start())
            used, room = 0, width
        used += cell_len(word[0])
    return list(cell.divide(cuts))
