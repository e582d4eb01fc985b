"""What a rollback would go back to, and why it cannot; looked at before anybody is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from llamarig.compare.kernel_back import KernelBack, alone, with_former
from llamarig.compare.text import printable
from llamarig.compare.view import View, as_map, as_text
from llamarig.converge.controller import is_gone
from llamarig.errors import ExitCode, RigError


@dataclass(frozen=True)
class Former:
    """The state before the last apply that changed what runs."""

    release: str
    at: str
    """When it was proven, UTC."""
    kernel: KernelBack | None = None
    """The kernel on which it was proven; None where that is what runs and boots, or nobody knows it."""

    def __str__(self) -> str:
        words = f"files of {self.at}, release {self.release}"
        return words if self.kernel is None or self.kernel.why else f"{words}, {self.kernel} from the next boot on"


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
    _not_locked(host, observed, break_lock=break_lock)
    return former


def whole_way(host: str, view: View, *, break_lock: bool = False) -> Former:
    """The former state with the kernel that belongs to it; errors as of :func:`way_back`."""
    return replace(way_back(host, view.observed, break_lock=break_lock), kernel=with_former(view))


def kernel_way(host: str, view: View, *, break_lock: bool = False) -> KernelBack:
    """The kernel to go back to alone; :class:`RigError` when there is none that boots, or somebody holds the lock."""
    found = alone(view)
    if found.why:
        raise RigError("there is no kernel to go back to", host, found.why, code=_FAILED)
    _not_locked(host, view.observed, break_lock=break_lock)
    return found


def _not_locked(host: str, observed: Mapping[str, Any], *, break_lock: bool) -> None:
    who = held_by(observed)
    if who and not break_lock:
        fix = "wait until it is done; if that process is gone for good, give --break-lock"
        raise RigError(f"another apply holds this host's lock: {who}", host, fix=fix, code=_FAILED)


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
