"""``manifest.json`` of a mirror: every file with its sha256 and size, what it is, and for which hosts it is there."""

from __future__ import annotations

import hashlib
import json
import os
import posixpath
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from llamarig.errors import RigError, naming
from llamarig.render.site import MANIFEST, read_manifest

SCHEMA = 1
SUMS = "SHA256SUMS"
"""The same hashes for ``sha256sum --check``, so that a site can look before llamarig is installed there."""


@dataclass(frozen=True)
class Entry:
    """One file; the key under which the manifest has it is its path below the mirror."""

    sha256: str
    size: int
    kind: str
    """``source``, ``patch``, ``toolkit``, ``release``, ``model``, ``note``, ``package``, ``index`` or ``python``."""
    name: str
    """What a user knows it by."""
    hosts: frozenset[str] = frozenset()
    """Those that need it; none for what belongs to no host (the Python environment)."""

    def to_json(self) -> dict[str, Any]:
        """As the manifest holds it."""
        return {
            "sha256": self.sha256,
            "size": self.size,
            "kind": self.kind,
            "name": self.name,
            "hosts": sorted(self.hosts),
        }


@dataclass
class Manifest:
    """What lies in a mirror."""

    files: dict[str, Entry] = field(default_factory=dict)
    debian: dict[str, dict[str, Any]] = field(default_factory=dict)
    """``debian-13-amd64`` -> ``directory``, armoured ``key`` in lines, its ``fingerprint``, ``packages`` asked for."""
    python: dict[str, Any] = field(default_factory=dict)
    """``directory``, ``requirements``, ``llamarig``, and the ``python`` and ``platform`` that its wheels are for."""

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(entry.size for entry in self.files.values())

    @classmethod
    def load(cls, directory: Path) -> Manifest:
        """That of a mirror; an empty one where the directory is new or empty.

        Raises :class:`RigError` for a directory that holds other things and no manifest, or one that cannot be read.
        """
        if not (directory / MANIFEST).exists():
            if directory.is_dir() and any(not entry.name.startswith(".llamarig") for entry in directory.iterdir()):
                raise RigError(
                    what="the directory holds other things than a mirror",
                    where=str(directory),
                    why=f"there is no {MANIFEST} in it",
                    fix="name a new or empty directory, or one that `llamarig mirror` made",
                )
            return cls()
        found = read_manifest(directory)
        try:
            files = {
                _inside(path): Entry(
                    str(entry["sha256"]),
                    int(entry["size"]),
                    str(entry["kind"]),
                    str(entry["name"]),
                    frozenset(map(str, entry["hosts"])),
                )
                for path, entry in found["files"].items()
            }
            debian = {str(name): dict(held) for name, held in found["debian"].items()}
            return cls(files, debian, dict(found["python"]))
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
            raise RigError(
                what="the mirror's manifest is not one that llamarig wrote",
                where=str(directory / MANIFEST),
                why=repr(error)[:200],
                fix="take it away; what lies in the mirror is looked at and used again",
            ) from error

    def to_json(self) -> dict[str, Any]:
        """The documented form."""
        return {
            "schema": SCHEMA,
            "files": {path: self.files[path].to_json() for path in sorted(self.files)},
            "debian": self.debian,
            "python": self.python,
        }

    def save(self, directory: Path) -> str:
        """Write it and the list for sha256sum, each whole or not at all.

        Returns the sha256 of that list. It vouches for the manifest too, and so for everything in the mirror.
        """
        content = (json.dumps(self.to_json(), indent=1) + "\n").encode()
        write_whole(directory / MANIFEST, content)
        hashes = {path: entry.sha256 for path, entry in self.files.items()}
        hashes[MANIFEST] = hashlib.sha256(content).hexdigest()
        sums = "".join(f"{hashes[path]}  {path}\n" for path in sorted(hashes)).encode()
        write_whole(directory / SUMS, sums)
        return hashlib.sha256(sums).hexdigest()


def _inside(path: str) -> str:
    """A path below the mirror; ValueError for one that leads out of it, or names what is llamarig's own there."""
    if path.startswith("/") or ".." in path.split("/") or not path.isprintable() or not path:
        raise ValueError(f"{path[:200]!r} leads out of the mirror")
    if (plain := posixpath.normpath(path)) in {".", MANIFEST, SUMS} or plain.startswith(".llamarig"):
        raise ValueError(f"{path[:200]!r} is no file that a mirror collects")
    return path


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file by ``content``, on the disk before it gets its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".llamarig-{path.name}.{os.getpid()}")
    try:
        with naming(path), temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    temporary.replace(path)
