"""What runs on a host, told in a few words: the part of an observation that ``status`` shows."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from llamarig.compare.text import printable
from llamarig.compare.view import View, as_int, as_text, view_of
from llamarig.render.wanted import RELEASES, Wanted, WantedService

_UP = ("active", "reloading", "refreshing", "deactivating")
"""States whose beginning is the unit's start; of the others it is the end of its last run."""


def state_of(wanted: Wanted, observed: Mapping[str, Any]) -> dict[str, Any]:
    """The documented form of ``llamarig status --json`` without ``drift``.

    Works on a host that llamarig has never touched: what is not there is null
    or ``absent``. Raises :class:`~llamarig.errors.RigError` when ``observed`` is
    no observation.
    """
    view = view_of(wanted, observed)
    current = as_text(observed.get("current"))
    record, former = view.part("record"), view.part("former")
    return {
        "host": wanted.host,
        "system": " ".join(filter(None, (_word(view.part("os").get(key)) for key in ("id", "version")))),
        "kernel": _word(observed.get("kernel")),
        "release": {
            "current": _word(current.removeprefix("releases/")) if current else None,
            "former": _word(former.get("release")) or None,
            "former-at": _word(former.get("at")),
            "wanted": wanted.release.id,
        },
        "record": {
            "state": _word(observed.get("record-state")) or "unknown",
            "applied-at": _word(record.get("applied-at")),
            "applied-from": _word(record.get("applied-from")),
            "llamarig": _word(record.get("llamarig")),
        },
        "lock": _lock(view.part("lock")),
        "services": {service.name: _service(view, service) for service in wanted.services},
    }


def _word(value: object) -> str | None:
    return printable(value) if isinstance(value, str) else None


def _lock(lock: Mapping[str, Any]) -> dict[str, Any] | None:
    """Who holds the lock, on which controller, in which process and run, and since when."""
    if not lock:
        return None
    words = {key: printable(lock[key]) for key in ("who", "from", "run", "error") if key in lock}
    return words | {"pid": as_int(lock.get("pid")), "since": _moment(lock.get("since"))}


def _service(view: View, service: WantedService) -> dict[str, Any]:
    unit, process = view.unit(service), view.process(service)
    exe = as_text(process.get("exe")) or ""
    below = exe.removeprefix(f"{RELEASES}/") if exe.startswith(f"{RELEASES}/") else ""
    return {
        "unit": service.unit,
        "load": _word(unit.get("load")) or "unknown",
        "state": _word(unit.get("active")) or "unknown",
        "sub-state": _word(unit.get("sub")) or "unknown",
        "enabled": unit.get("enabled") == "enabled",
        "since": _moment(unit.get("started" if unit.get("active") in _UP else "stopped")),
        "restarts": as_int(unit.get("restarts")) or 0,
        "main-pid": as_int(unit.get("main-pid")) or None,
        "release": printable(below.split("/")[0]) if below else None,
        "model": service.alias,
        "model-sha256": service.model_sha256,
        "address": service.address if service.port == 0 else f"{_bracketed(service.address)}:{service.port}",
    }


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def _moment(value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return datetime.fromtimestamp(value, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return None
