"""What is left of a driver that the spec names no more: our files, and the packages that we hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from llamarig.catalog.driver_packages import driver_packages
from llamarig.compare.action import Action
from llamarig.compare.text import printable
from llamarig.compare.view import View, as_texts
from llamarig.render.driver import MODULES, NODES, NOUVEAU, OURS
from llamarig.render.wanted import UNITS, Wanted

AT_BOOT = (MODULES, NOUVEAU, f"{UNITS}/{NODES}")
"""Without these a service on a card does not start after the next boot: no module is loaded, or nouveau, and
/dev/nvidia-uvm is not there. The role ``nvidia_driver`` keeps the same ones."""


def named(wanted: Wanted) -> tuple[str, ...]:
    """Our files that are left over where no driver is wanted: all, or those that no service on a card needs."""
    return tuple(path for path in OURS if wanted.release.backend != "cuda" or path not in AT_BOOT)


def probe(wanted: Wanted) -> dict[str, Any] | None:
    """What the host is asked to look for; nothing where a driver is wanted."""
    if wanted.driver is not None:
        return None
    known = driver_packages()
    return {"files": list(named(wanted)), "own": list(known.own), "apart": list(known.apart)}


def driver_left(view: View) -> Iterator[Action]:
    """Each thing that is taken away. The driver's packages stay: they belong to whoever owns the machine. So do, while
    cards are served, those files with which they come up at boot."""
    seen = view.part("driver-left")
    files = [path for path in as_texts(seen.get("files")) if path in named(view.wanted)]
    for path in files:
        yield Action("driver", path, "is left of a driver that the spec names no more", "absent", "there")
    for name in as_texts(seen.get("held")) if files else ():
        why = f"{printable(name)} is held for a driver that the spec names no more"
        yield Action("driver", printable(name), why, "not held", "held")


__all__ = ["AT_BOOT", "driver_left", "probe"]
