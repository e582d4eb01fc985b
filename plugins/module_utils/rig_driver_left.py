"""What an earlier apply wrote for a driver that the spec names no more. Files alone are read."""

from __future__ import annotations

import os
from typing import Any

from ansible.module_utils.rig_nvidia import packages


def look(probe: Any, root: str = "") -> dict[str, Any] | None:
    """Which ``files`` of ``probe`` are there, and which packages of the patterns are ``held``; None where no file
    is: a hold alone is somebody else's. ``probe`` is docs/contracts.md, Probe list, ``driver-left``."""
    if not isinstance(probe, dict):
        return None
    files = [path for path in probe.get("files", []) if os.path.lexists(root + path)]
    if not files:
        return None
    there = packages([], list(probe.get("own", [])), list(probe.get("apart", [])), root)
    return {"files": files, "held": [name for name, entry in there.items() if entry["held"]]}
