"""Rows on a terminal and away from one."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from llamarig.cli import context
from llamarig.cli.rows import print_hanging, print_records, print_rows

LONG = "one reason of several words that go on and on until no line of eighty columns can hold them all"
HEAD = ("service", "state", "since")
RECORD = ("chat", "[green]active (running)[/]", "2026-11-29T17:06:59Z")


def lines(monkeypatch: pytest.MonkeyPatch, width: int | None) -> io.StringIO:
    """Where the output goes: a terminal of ``width`` columns, or a file."""
    written = io.StringIO()
    console = Console(file=written, width=width or 80, force_terminal=width is not None, color_system=None)
    monkeypatch.setattr(context, "_console", lambda _stderr: console)
    return written


def test_away_from_a_terminal_a_row_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    written = lines(monkeypatch, None)
    print_rows([["a", LONG], ["longer", "b"], ["c", ""]], indent=2)
    assert written.getvalue() == f"  a       {LONG}\n  longer  b\n  c\n"


def test_on_a_terminal_the_last_cell_folds_under_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    written = lines(monkeypatch, 80)
    print_rows([["a", LONG]], indent=2)
    first, second = written.getvalue().splitlines()
    assert first.startswith("  a  one reason")
    assert second.startswith("     ")
    assert second[5] != " "
    assert max(len(first), len(second)) <= 80


def test_where_little_room_is_left_the_last_cell_gets_its_own_line(monkeypatch: pytest.MonkeyPatch) -> None:
    written = lines(monkeypatch, 60)
    print_rows([["x" * 40, LONG]], indent=2)
    first, *others = written.getvalue().splitlines()
    assert first == "  " + "x" * 40
    assert all(line.startswith("      ") and line == line.rstrip() for line in others)


def test_one_long_path_does_not_push_the_others_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    written = lines(monkeypatch, 80)
    print_rows([["x" * 75, "is not there"], ["short", "is not there"]])
    assert written.getvalue() == f"{'x' * 75}\n    is not there\nshort  is not there\n"


def test_a_word_is_never_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    written = lines(monkeypatch, 60)
    print_rows([["x", "y" * 200]])
    assert "y" * 200 in written.getvalue()


def test_records_become_lists_on_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    written = lines(monkeypatch, 80)
    print_records(HEAD, [RECORD])
    assert written.getvalue() == ("service  state             since\nchat     active (running)  2026-11-29T17:06:59Z\n")
    written = lines(monkeypatch, 40)
    print_records(HEAD, [RECORD])
    assert written.getvalue() == "chat  active (running)\n    since 2026-11-29T17:06:59Z\n"


def test_numbers_stand_under_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    written = lines(monkeypatch, None)
    print_rows([["MiB", "chat", "embed"], ["weights", "92.10", ""], ["kv-cache", "1,090.00", "3.00"]], right=True)
    assert written.getvalue().splitlines() == [
        "MiB           chat  embed",
        "weights      92.10",
        "kv-cache  1,090.00   3.00",
    ]


def test_a_line_hangs_on_a_terminal_and_is_whole_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    written = lines(monkeypatch, 80)
    print_hanging(f"note x: {LONG}", indent=2, hang=6)
    first, *others = written.getvalue().splitlines()
    assert first.startswith("  note x: one reason")
    assert len(first) > 70
    assert others
    assert all(line.startswith(" " * 8) and len(line) <= 80 for line in others)
    written = lines(monkeypatch, None)
    print_hanging(f"note x: {LONG}", indent=2)
    assert written.getvalue() == f"  note x: {LONG}\n"
