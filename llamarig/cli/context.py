"""What every verb needs: the project, the chosen hosts, and where output goes."""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llamarig.errors import RigError

if TYPE_CHECKING:
    from rich.console import Console

    from llamarig.spec.load import LoadedHost

_project = Path()
_printed = False


def set_project(path: Path) -> None:
    """Remember ``-C DIR`` for the verb that runs next."""
    global _project  # noqa: PLW0603 - one process runs one verb; typer's context would have to reach every helper
    _project = path


def project_root() -> Path:
    """The directory that holds the specs (``inventory/``), headers and patches."""
    return _project.resolve()


@cache
def _console(stderr: bool) -> Console:
    from llamarig.cli.console import SafeConsole

    return SafeConsole(stderr=stderr, highlight=False, soft_wrap=not sys.stdout.isatty())


def out() -> Console:
    """Standard output, for what the user asked for."""
    return _console(False)


def err() -> Console:
    """Standard error, for progress and problems."""
    return _console(True)


def emit_json(data: Any) -> None:
    """Print ``data`` as JSON on standard output, keys in the order given."""
    global _printed  # noqa: PLW0603 - one process runs one verb, and standard output holds one document
    _printed = True
    text = json.dumps(data, indent=2, ensure_ascii=False)
    if not text.isascii() or "\x7f" in text:
        # What steers a terminal or turns text is written as an escape; in JSON it can stand in strings only.
        text = "".join(ch if ch == "\n" or ch.isprintable() else json.dumps(ch)[1:-1] for ch in text)
        text = text.replace("\x7f", "\\u007f")
    sys.stdout.write(text + "\n")


def printed() -> bool:
    """Whether the verb has printed its document already."""
    return _printed


def select(hosts: list[str], all_: bool) -> list[LoadedHost]:
    """The named hosts of the project, or all of them; every one is valid.

    Raises :class:`RigError` when none or an unknown one is named, and
    :class:`~llamarig.errors.RigErrors` with every error of the chosen specs.
    """
    from llamarig.spec.load import load_project

    if bool(hosts) == all_:
        raise RigError(what="name one or more hosts, or give --all", fix="for example: llamarig plan demo")
    return load_project(project_root()).valid(None if all_ else hosts)
