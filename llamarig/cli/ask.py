"""Asking before something is done that users of a host would notice."""

from __future__ import annotations

import sys

import typer

from llamarig.errors import RigError


def ask_or_refuse(what: str) -> None:
    """Go on only with a yes.

    Raises :class:`RigError` when there is nobody to ask, or the answer is no.
    """
    if not sys.stdin.isatty():
        raise RigError(what=what, why="there is no terminal to ask on", fix="give --yes")
    if not typer.confirm(f"{what}. Go on?", err=True):
        raise RigError(what="stopped; nothing was touched")
