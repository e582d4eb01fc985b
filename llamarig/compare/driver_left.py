"""What is left of a driver that the spec names no more: our files, and the packages that we hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from llamarig.catalog.driver_packages import driver_packages
from llamarig.compare.action import Action
from llamarig.compare.text import printable
from llamarig.compare.view import View, as_texts
from llamarig.render.driver import OURS
from llamarig.render.wanted import WantedDriver


def probe(wanted: WantedDriver | None) -> dict[str, Any] | None:
    """What the host is asked to look for; nothing where a driver is wanted."""
    if wanted is not None:
        return None
    known = driver_packages()
    return {"files": list(OURS), "own": list(known.own), "apart": list(known.apart)}


def driver_left(view: View) -> Iterator[Action]:
    """Each thing that is taken away. The driver's packages stay: they belong to whoever owns the machine."""
    seen = view.part("driver-left")
    files = [path for path in as_texts(seen.get("files")) if path in OURS]
    for path in files:
        yield Action("driver", path, "is left of a driver that the spec names no more", "absent", "there")
    for name in as_texts(seen.get("held")) if files else ():
        why = f"{printable(name)} is held for a driver that the spec names no more"
        yield Action("driver", printable(name), why, "not held", "held")


__all__ = ["driver_left", "probe"]
