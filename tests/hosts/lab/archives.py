"""Debian packages that one machine fetched, kept for the next one.

They are copied in and out rather than shared, since apt locks its archive directory.
What is kept is listed with its sha256 and checked before it is handed out again.
"""

from __future__ import annotations

import json
from pathlib import Path

from lab.host import Host
from lab.packages import cache_dir, sha256_file

MOUNT = "/var/cache/llamarig-lab/apt"
_INDEX = "index.json"


def store() -> Path:
    """The directory that all machines have mounted at :data:`MOUNT`."""
    path = cache_dir() / "lab" / "apt"
    path.mkdir(parents=True, exist_ok=True)
    return path


def _index(directory: Path) -> dict[str, str]:
    try:
        loaded = json.loads((directory / _INDEX).read_text())
    except (OSError, ValueError):
        return {}
    return {str(name): str(digest) for name, digest in loaded.items()}


def hand_out(host: Host) -> None:
    """Give a fresh machine the packages that are kept, less those that are no longer what they were."""
    directory = store()
    index = _index(directory)
    for path in directory.glob("*.deb"):
        if index.get(path.name) != sha256_file(path):
            path.unlink()
    host.exec(f"cp {MOUNT}/*.deb /var/cache/apt/archives/ 2>/dev/null || true")


def take_back(host: Host) -> None:
    """Keep what the machine fetched beyond what it was given."""
    directory = store()
    host.exec(f"cp -n /var/cache/apt/archives/*.deb {MOUNT}/ 2>/dev/null || true")
    kept = {path.name: sha256_file(path) for path in sorted(directory.glob("*.deb"))}
    part = directory / f"{_INDEX}.part"
    part.write_text(json.dumps(kept, indent=1))
    part.rename(directory / _INDEX)
