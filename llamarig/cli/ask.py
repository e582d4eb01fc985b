"""Asking before something is done that users of a host would notice."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from llamarig.errors import ExitCode, RigError

AskBecomePass = Annotated[bool, typer.Option("--ask-become-pass", "-K", help="Ask for sudo's password.")]
"""The option of every verb that becomes root on a host."""


def ask_or_refuse(what: str) -> None:
    """Go on only with a yes.

    Raises :class:`RigError` when there is nobody to ask, or the answer is no.
    """
    if not sys.stdin.isatty():
        raise RigError(what=what, why="there is no terminal to ask on", fix="give --yes")
    if not typer.confirm(f"{what}. Go on?", err=True):
        raise RigError(what="stopped; nothing was touched")


@contextmanager
def interrupted_by_hand(hosts: list[str], verb: str) -> Iterator[None]:
    """Say what a Ctrl-C leaves behind, instead of ending without a word.

    Raises :class:`RigError` in the place of the interruption.
    """
    try:
        yield
    except KeyboardInterrupt:
        raise RigError(
            what=f"interrupted; {'the host' if len(hosts) == 1 else 'a host'} may be half changed",
            where=", ".join(hosts),
            why="a build that was begun goes on there by itself, and the lock of this run is taken over by the next",
            fix=f"run the same {verb} again: it goes on from what is there, and proves it",
            code=ExitCode.HOST_FAILED,
        ) from None


@contextmanager
def asked_password(ask: bool) -> Iterator[str | None]:
    """The file that holds sudo's password while a verb runs, asked for once and wiped at the end; None unless ``ask``.

    Raises :class:`RigError` when there is no answer.
    """
    from llamarig.cli.apply import become_password
    from llamarig.converge.private import private_directory

    if not ask:
        yield None
        return
    with private_directory() as private:
        yield become_password(private)
