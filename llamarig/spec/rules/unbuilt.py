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
    spec = view.spec
    for name, model in spec.models.items():
        if model.fetch == "mirror":
            yield _refuse(("models", name, "fetch"), "fetching from a mirror", "write `fetch: controller` or `host`")
    if spec.engine.build.where != "host":
        what = f"the engine on a {spec.engine.build.where}"
        yield _refuse(("engine", "build", "where"), what, "write `where: host`, or leave it out")
    yield from _host(view)


def _host(view: View) -> Iterator[Broken]:
    spec = view.spec
    keys: tuple[tuple[Loc, bool, str], ...] = (
        (("kernel",), spec.kernel is not None, "a pinned kernel"),
        (("connection", "wake-on-lan"), spec.connection.wake_on_lan is not None, "waking a host"),
        (("maintenance", "window"), spec.maintenance.window is not None, "maintenance windows"),
        (("maintenance", "drain"), spec.maintenance.drain, "draining"),
    )
    for loc, given, what in keys:
        if given:
            yield _refuse(loc, what, f"remove `{loc[-1]}`")


def planned(view: View) -> Iterator[Broken]:
    """What is planned with, but not carried out: a warning here, a refusal of apply."""
    for loc, error in planned_only(view.spec):
        yield Broken(loc, error.what, error.fix, warning=True)


RULES = (refused, planned)
