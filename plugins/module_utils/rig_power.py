"""What a host knows of power, from files alone: the watch's files and state, and which sleep targets are masked.

``nvidia-smi`` is not started; the watch writes down what it said (templates/opt/llamarig/libexec/power-limit).
"""

from __future__ import annotations

from typing import Any

from ansible.module_utils.rig_files import SMALL, Hasher, UnusualFileError, describe, lstat, read_json, read_link

UNITS = "/etc/systemd/system"
CONFIG = "/etc/llamarig/power.json"
STATE = "/var/lib/llamarig/power/state.json"
SERVICE, TIMER = "llamarig-power.service", "llamarig-power.timer"
FILES = ("/opt/llamarig/libexec/power-limit", CONFIG, f"{UNITS}/{SERVICE}", f"{UNITS}/{TIMER}")
SLEEP_TARGETS = (
    "sleep.target",
    "suspend.target",
    "hibernate.target",
    "hybrid-sleep.target",
    "suspend-then-hibernate.target",
)
_STATE_BYTES = 1 << 16


def look(hasher: Hasher, root: str = "") -> dict[str, Any]:
    """``files``, ``masked`` targets, ``we-masked`` (an apply did), and the ``state`` that the watch wrote last."""
    config = _json(f"{root}{CONFIG}")
    return {
        "files": {path: _file(f"{root}{path}", hasher) for path in FILES},
        "masked": [target for target in SLEEP_TARGETS if _masked(f"{root}{UNITS}/{target}")],
        "we-masked": config.get("mask-sleep") is True,
        "state": _json(f"{root}{STATE}") or None,
    }


def units(found: dict[str, Any]) -> list[str]:
    """The units that are worth asking systemd for: those whose files are there."""
    return [name for name in (SERVICE, TIMER) if found["files"][f"{UNITS}/{name}"]["type"] != "absent"]


def _json(path: str) -> dict[str, Any]:
    try:
        data = read_json(path, _STATE_BYTES)
    except (UnusualFileError, RecursionError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def _masked(path: str) -> bool:
    try:
        return read_link(path) == "/dev/null"
    except OSError:
        return False


def _file(path: str, hasher: Hasher) -> dict[str, Any]:
    try:
        info = lstat(path)
        if info is None:
            return {"type": "absent"}
        entry = describe(info)
        if entry["type"] == "file":
            entry["sha256"] = hasher.of_path(path)[0] if info.st_size <= SMALL else None
    except (UnusualFileError, OSError) as error:
        return {"type": "unreadable", "error": str(error)}
    return entry
