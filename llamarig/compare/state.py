"""What runs on a host, told in a few words: the part of an observation that ``status`` shows."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from llamarig.compare.reboot import needed, newest
from llamarig.compare.reboot_tried import in_vain
from llamarig.compare.text import printable
from llamarig.compare.view import View, as_int, as_map, as_text, view_of
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
    former = view.part("former")
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
        "record": record_of(view),
        "lock": _lock(view.part("lock")),
        "power": _power(view),
        "reboot": _reboot(view),
        "services": {service.name: _service(view, service) for service in wanted.services},
    }


def record_of(view: View) -> dict[str, Any]:
    """Who applied what the host knows of, when, from where and in which run; nulls where no record can be read."""
    record = view.part("record")
    return {
        "state": _word(view.observed.get("record-state")) or "unknown",
        "applied-at": _word(record.get("applied-at")),
        "applied-from": _word(record.get("applied-from")),
        "llamarig": _word(record.get("llamarig")),
        "run": _word(record.get("run")),
    }


def _power(view: View) -> dict[str, Any] | None:
    """What the watch over power saw last of each card, by name; null where none has looked since the host booted."""
    state = view.part("power", "state")
    if not state or state.get("boot-id") != view.observed.get("boot-id"):
        return None
    cards = {printable(as_map(card).get("name")): as_map(card) for card in as_map(state.get("cards")).values()}
    return {
        "at": moment(state.get("time")),
        "error": _word(state.get("error")) or "",
        "cards": {
            name: {
                "limit-w": _watts(card.get("limit-w")),
                "wanted-w": as_int(card.get("wanted-w")),
                "changed-by-others": as_int(as_map(card.get("changed-by-others")).get("count")) or 0,
                "throttled-us": {
                    reason: as_int(as_map(card.get("throttled-us")).get(reason)) or 0 for reason in _REASONS
                },
            }
            for name, card in cards.items()
        },
    }


def _reboot(view: View) -> dict[str, Any] | None:
    """Why a reboot is needed, and why another would bring no more than the last one; null where none is needed."""
    if not (reasons := needed(view)):
        return None
    return {"needed": reasons, "in-vain": in_vain(view, newest(as_map(view.part("driver").get("kernels"))))}


_REASONS = ("power-cap", "software-thermal", "hardware-thermal", "power-brake")


def _watts(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _word(value: object) -> str | None:
    return printable(value) if isinstance(value, str) else None


def _lock(lock: Mapping[str, Any]) -> dict[str, Any] | None:
    """Who holds the lock, on which controller, in which process and run, and since when."""
    if not lock:
        return None
    words = {key: printable(lock[key]) for key in ("who", "from", "run", "error") if key in lock}
    return words | {"pid": as_int(lock.get("pid")), "since": moment(lock.get("since"))}


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
        "since": moment(unit.get("started" if unit.get("active") in _UP else "stopped")),
        "restarts": as_int(unit.get("restarts")) or 0,
        "main-pid": as_int(unit.get("main-pid")) or None,
        "release": printable(below.split("/")[0]) if below else None,
        "model": service.alias,
        "model-sha256": service.model_sha256,
        "address": service.address if service.port == 0 else f"{_bracketed(service.address)}:{service.port}",
    }


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def moment(value: object) -> str | None:
    """Seconds since 1970 as a UTC time, ``2026-11-29T16:00:00Z``; None for what is no such number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return datetime.fromtimestamp(value, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return None
