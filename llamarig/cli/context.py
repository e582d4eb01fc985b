"""What every verb needs: the project, the chosen hosts, and where output goes."""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llamarig.errors import RigError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager, ExitStack

    from rich.console import Console

    from llamarig.spec.load import LoadedHost, Project
    from llamarig.spec.overlay import Overlay

_project = Path()
_overlay: Path | None = None
_end: ExitStack | None = None
_printed = False


def set_project(path: Path) -> None:
    """Remember ``-C DIR`` for the verb that runs next."""
    global _project  # noqa: PLW0603 - one process runs one verb; typer's context would have to reach every helper
    _project = path


def set_overlay(path: Path | None) -> None:
    """Remember ``--overlay FILE`` for the verb that runs next."""
    global _overlay  # noqa: PLW0603 - one process runs one verb, as above
    _overlay = path


def set_end(stack: ExitStack) -> None:
    """Remember what is left when the verb that runs next has ended."""
    global _end  # noqa: PLW0603 - one process runs one verb, as above
    _end = stack


def until_the_end(held: AbstractContextManager[None]) -> None:
    """Enter ``held`` now, and leave it when the verb has ended, however it ends."""
    if _end is None:
        raise RuntimeError("no verb runs")
    _end.enter_context(held)


def overlay() -> Overlay | None:
    """The overlay that is laid on a spec; raises :class:`~llamarig.errors.RigErrors` when the file is none."""
    from llamarig.spec.overlay import read_overlay

    return None if _overlay is None else read_overlay(_overlay.absolute())


def refuse_overlay(verb: str) -> None:
    """For verbs that write specs or look at none: with an overlay they would write what only stands in."""
    if _overlay is not None:
        raise RigError(
            what=f"{verb} takes no --overlay",
            where=str(_overlay),
            why="an overlay stands in for values of a spec, and is written into none",
            fix=f"run {verb} without it",
        )


def load() -> Project:
    """All specs of the project, with the overlay on the one that it is for; says so on standard error.

    Raises :class:`RigError` when no spec is the one that the overlay names.
    """
    from rich.markup import escape

    from llamarig.compare.text import counted
    from llamarig.spec.load import load_project

    given = overlay()
    project = load_project(project_root(), given)
    if given is not None:
        project.named(given.host)
        told = f"overlay: {given.path} stands in for {counted(len(given.replaced), 'value')} of {given.host}"
        err().print(f"[yellow]{escape(told)}[/]", soft_wrap=True)
    return project


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


def hosts_or_all(hosts: list[str], all_: bool, verb: str) -> None:
    """Raise :class:`RigError` for neither and for both, with the verb and what comes before its hosts as an example."""
    if hosts and all_:
        fix = f"leave one of them out, for example: llamarig {verb} {hosts[0]}"
        raise RigError(what="hosts are named, and --all is given too", fix=fix)
    if not hosts and not all_:
        raise RigError(what="name one or more hosts, or give --all", fix=f"for example: llamarig {verb} demo")


def select(hosts: list[str], all_: bool, verb: str) -> list[LoadedHost]:
    """The named hosts of the project, or all of them; every one is valid.

    Raises :class:`RigError` when none or an unknown one is named, and
    :class:`~llamarig.errors.RigErrors` with every error of the chosen specs.
    """
    hosts_or_all(hosts, all_, verb)
    return load().valid(None if all_ else hosts)
