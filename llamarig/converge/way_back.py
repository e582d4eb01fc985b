"""What a rollback would go back to, and why it cannot; looked at before anybody is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from llamarig.compare.text import printable
from llamarig.compare.view import as_map, as_text
from llamarig.converge.controller import is_gone
from llamarig.errors import ExitCode, RigError


@dataclass(frozen=True)
class Former:
    """The state before the last apply that changed what runs."""

    release: str
    at: str
    """When it was proven, UTC."""

    def __str__(self) -> str:
        return f"files of {self.at}, release {self.release}"


def former_state(observed: Mapping[str, Any]) -> Former | None:
    """The former state that the host keeps; None when it has none."""
    kept = as_map(observed.get("former"))
    release = as_text(kept.get("release"))
    return Former(printable(release), printable(kept.get("at"))) if release else None


def way_back(host: str, observed: Mapping[str, Any], *, break_lock: bool = False) -> Former:
    """The former state; :class:`RigError` when there is none, or somebody holds the host's lock."""
    former = former_state(observed)
    if former is None and observed.get("record-state") == "absent":
        raise RigError("llamarig was never applied to this host", host, fix=f"llamarig apply {host}", code=_FAILED)
    if former is None:
        raise RigError(
            "there is no former state on this host",
            host,
            "one is kept when an apply changes what runs",
            "write the former commit or settings into the spec, then apply",
            _FAILED,
        )
    who = held_by(observed)
    if who and not break_lock:
        fix = "wait until it is done; if that process is gone for good, give --break-lock"
        raise RigError(f"another apply holds this host's lock: {who}", host, fix=fix, code=_FAILED)
    return former


def held_by(observed: Mapping[str, Any]) -> str:
    """Who holds the host's lock; empty when nobody does, its lease ran out, or its process is gone."""
    lock = as_map(observed.get("lock"))
    if not lock or is_gone(dict(lock)) or _ran_out(lock):
        return ""
    return f"{printable(lock.get('who'))} on {printable(lock.get('from'))} (process {printable(lock.get('pid'))})"


_FAILED = ExitCode.HOST_FAILED
_LEASE_S = 900.0
"""As rig_lock has it."""


def _ran_out(lock: Mapping[str, Any]) -> bool:
    age = lock.get("age-s")
    return isinstance(age, int | float) and age > _LEASE_S
