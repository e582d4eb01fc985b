"""What the host is asked to look at, from what is wanted there."""

from __future__ import annotations

from typing import Any

from llamarig.compare import driver_left
from llamarig.render.wanted import Wanted, WantedDriver


def _driver(wanted: WantedDriver | None) -> dict[str, Any] | None:
    if wanted is None:
        return None
    return {
        "packages": list(wanted.packages),
        "own": list(wanted.own),
        "apart": list(wanted.apart),
        "other": list(wanted.other),
        "files": {file.path: file.sha256 for file in wanted.files},
        "stale": list(wanted.stale),
        "stale-packages": list(wanted.stale_packages),
        "unit": wanted.unit,
    }


def probe_list(wanted: Wanted, deep: bool = False) -> dict[str, Any]:
    """The ``probe`` of ``rig_observe`` (docs/contracts.md, Probe list); ``deep`` hashes every file again."""
    return {
        "files": [file.path for file in wanted.files],
        "expected": {file.path: file.sha256 for file in wanted.files},
        "directories": [path for path, _, _, _ in wanted.directories],
        "packages": list(wanted.packages),
        "users": [user.name for user in wanted.users],
        "toolkit": wanted.toolkit.version if wanted.toolkit is not None else "",
        "driver": _driver(wanted.driver),
        "driver-left": driver_left.probe(wanted),
        "release": wanted.release.id,
        "models": [{"path": model.path, "links": list(model.links)} for model in wanted.models],
        "credentials": [entry.path for entry in wanted.credentials],
        "key-files": {entry.path: entry.source for entry in wanted.credentials if entry.kind == "file"},
        "units": [service.unit for service in wanted.services],
        "ports": [{"address": service.address, "port": service.port} for service in wanted.services],
        "deep": deep,
    }
