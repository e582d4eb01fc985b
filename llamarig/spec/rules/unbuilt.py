"""Keys that are part of the schema, but whose feature this version does not build yet."""

from __future__ import annotations

from collections.abc import Iterator

from llamarig.spec.rules.base import Broken, View
from llamarig.spec.tree import Loc
from llamarig.spec.unbuilt import planned_only


def _refuse(loc: Loc, what: str, fix: str) -> Broken:
    return Broken(loc, f"`{loc[-1]}`: this version does not build {what} yet", fix)


def refused(view: View) -> Iterator[Broken]:
    """Refused by name, so that nobody believes that it is done."""
    if view.spec.kernel is not None:
        yield _refuse(("kernel",), "a pinned kernel", "remove `kernel`")


def planned(view: View) -> Iterator[Broken]:
    """What is planned with, but not carried out: a warning here, a refusal of apply."""
    for loc, error in planned_only(view.spec):
        yield Broken(loc, error.what, error.fix, warning=True)


RULES = (refused, planned)
