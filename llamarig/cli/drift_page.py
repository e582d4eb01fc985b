"""``llamarig drift --html``: the page of a fleet's drift into a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from llamarig.fleet.drift.host import HostDrift


def write(found: Sequence[HostDrift], path: Path, *, quiet: bool) -> None:
    """Write the page, and say where it lies unless ``quiet``. Raises :class:`~llamarig.errors.RigError` for a file that
    is no such page, or that cannot be written."""
    from datetime import UTC, datetime

    from rich.markup import escape

    from llamarig.cli.context import out
    from llamarig.cli.plan_view.files import replaceable, write_page
    from llamarig.fleet.drift.fleet import counts
    from llamarig.fleet.drift.page import page
    from llamarig.fleet.drift.words import summary_words

    replaceable(path, "drift")
    write_page(path, page(found, datetime.now(UTC)))
    if not quiet:
        out().print(escape(f"{summary_words(counts(found))}; {path}"), soft_wrap=True)
