"""What the fleet commands read of a host: time zones, and how it is woken."""

from __future__ import annotations

from collections.abc import Iterator
from zoneinfo import ZoneInfo

from llamarig.spec.rules.base import Broken, View


def timezone(view: View) -> Iterator[Broken]:
    """The time zone of a maintenance window is one that the controller knows, and there is a window for it."""
    maintenance = view.spec.maintenance
    if maintenance.timezone is None:
        return
    loc = ("maintenance", "timezone")
    if not known_zone(maintenance.timezone):
        if known_zone("Europe/Berlin"):
            yield Broken(loc, f"there is no time zone `{maintenance.timezone}`", "`timedatectl list-timezones` has all")
        else:
            what = "this controller has no time zones, so that nobody can tell when the window is"
            yield Broken(loc, what, "install tzdata, or leave `timezone` out: the host's own counts then")
    if maintenance.window is None:
        what, rests = "`timezone` without a `window` does nothing", (("maintenance", "window"),)
        yield Broken(loc, what, "add `window`, or remove it", rests, warning=True)


def known_zone(name: str) -> bool:
    """Whether the controller has the time zone."""
    try:
        ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        return False
    return True


def waking(view: View) -> Iterator[Broken]:
    """A host that is the controller itself is not woken."""
    if view.spec.wake is not None and view.spec.connection.type == "local":
        yield Broken(("wake",), "the controller itself is awake", "remove `wake`")


RULES = (timezone, waking)
