"""Which packages make a driver, which of them carry its version, and what earlier instructions leave behind."""

from __future__ import annotations

from functools import cache

from llamarig.catalog.data import Entry, read
from llamarig.catalog.gpus import Flavour


class _Set(Entry):
    source: str
    distribution: str
    flavour: Flavour
    ask: list[str]


class DriverPackages(Entry):
    """The catalog's file, typed."""

    sets: list[_Set]
    own: list[str]
    """Patterns (fnmatch) of the names that carry the driver's version."""
    apart: list[str]
    """Patterns of those among them that do not."""
    flavours: dict[Flavour, list[str]]
    stale_files: list[str]
    stale_packages: list[str]

    def asked(self, source: str, distribution: str, flavour: Flavour) -> tuple[str, ...]:
        """What is installed by name; empty where nobody knows the names.

        ``source`` is ``debian`` for Debian's own packages, else ``nvidia``.
        """
        key = (source, distribution, flavour)
        return next(
            (tuple(each.ask) for each in self.sets if (each.source, each.distribution, each.flavour) == key), ()
        )


@cache
def driver_packages() -> DriverPackages:
    """The catalog's knowledge of driver packages."""
    return DriverPackages.model_validate(read("driver_packages.yml"))
