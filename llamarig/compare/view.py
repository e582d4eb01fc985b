"""Reading an observation whose every part may be missing or of the wrong type: it is hostile text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from llamarig.errors import ExitCode, RigError
from llamarig.render.wanted import RELEASES, Wanted, WantedService

SCHEMA = 1


def as_map(value: object) -> Mapping[str, Any]:
    """A mapping, empty for anything else."""
    return value if isinstance(value, Mapping) else {}


def as_text(value: object) -> str | None:
    """A text, None for anything else."""
    return value if isinstance(value, str) else None


def as_texts(value: object) -> list[str]:
    """The texts of a list, none for anything else."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def as_int(value: object) -> int | None:
    """A whole number, None for anything else (a truth value is none)."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def same_mode(wanted: str, seen: object) -> bool:
    """Whether two octal modes are equal, ``0644`` and ``644`` being the same."""
    return isinstance(seen, str) and seen.isdecimal() and seen.lstrip("0") == wanted.lstrip("0")


@dataclass(frozen=True)
class View:
    """One host: what is wanted, and what was observed."""

    wanted: Wanted
    observed: Mapping[str, Any]

    def part(self, *keys: str) -> Mapping[str, Any]:
        """The mapping under ``keys``, empty when it is missing or none."""
        found: Mapping[str, Any] = self.observed
        for key in keys:
            found = as_map(found.get(key))
        return found

    @cached_property
    def record(self) -> Mapping[str, Any]:
        """The host's record when its digest holds, else nothing."""
        return self.part("record") if self.observed.get("record-state") == "ok" else {}

    def recorded(self, path: str) -> Mapping[str, Any]:
        """What the record says about a file."""
        return as_map(as_map(self.record.get("files")).get(path))

    def release(self, release_id: str) -> Mapping[str, Any]:
        """One release as it lies on the host, with ``provenance`` and ``files``; empty when it is not there."""
        return self.part("releases", release_id)

    def built(self, release_id: str) -> Mapping[str, Any]:
        """Path below the release -> sha256, as its provenance.json says."""
        return as_map(as_map(self.release(release_id).get("provenance")).get("files"))

    def unit(self, service: WantedService) -> Mapping[str, Any]:
        """State of a service's unit."""
        return self.part("units", service.unit)

    def process(self, service: WantedService) -> Mapping[str, Any]:
        """The main process of a service; empty when there is none."""
        pid = as_int(self.unit(service).get("main-pid"))
        return self.part("processes", str(pid)) if pid else {}

    def runs_wanted_release(self, service: WantedService) -> bool:
        """Whether the service's process is the wanted release's own binary, by path and by hash."""
        process = self.process(service)
        base = f"{RELEASES}/{self.wanted.release.id}/"
        exe = as_text(process.get("exe")) or ""
        sha256 = as_text(process.get("exe-sha256"))
        return (
            bool(sha256)
            and exe.startswith(base)
            and self.built(self.wanted.release.id).get(exe.removeprefix(base)) == sha256
        )


def view_of(wanted: Wanted, observed: object) -> View:
    """A checked view; :class:`RigError` when ``observed`` is no observation at all."""
    if not isinstance(observed, Mapping) or observed.get("schema") != SCHEMA:
        kind = type(observed).__name__ if not isinstance(observed, Mapping) else "schema"
        raise RigError(
            what="the host's observation is malformed",
            where=wanted.host,
            why=f"it must be a mapping with schema {SCHEMA}; wrong: {kind}",
            fix="run the command again; if it stays, the rig_observe module on the controller is of another version",
            code=ExitCode.HOST_FAILED,
        )
    return View(wanted, observed)
