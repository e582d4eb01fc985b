"""The error of one host among several: on standard error, and in its document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llamarig.errors import RigError

if TYPE_CHECKING:
    from rich.console import Console


def error_json(error: RigError) -> dict[str, str]:
    """The documented form of an error."""
    return {"what": error.what, "where": error.where, "why": error.why, "fix": error.fix}


def complain(host: str, error: RigError, console: Console | None = None) -> None:
    """Say what is wrong with a host, with its name whatever the error tells of where; on standard error by default."""
    from rich.markup import escape

    from llamarig.cli.context import err
    from llamarig.compare.text import printable

    shown = "\n".join(printable(line, 2000) for line in str(error).split("\n"))
    named = shown.startswith((f"{host}:", f"{host} "))
    (console or err()).print(
        f"[bold red]error:[/] {'' if named else escape(host) + ': '}{escape(shown)}", soft_wrap=True
    )
