"""Writing a wanted state into a directory, laid out as on the host, with a manifest of hashes."""

from __future__ import annotations

import json
import os
from pathlib import Path, PurePosixPath
from typing import Any

from llamarig.errors import RigError, naming
from llamarig.render.wanted import Wanted, WantedFile

MANIFEST = "manifest.json"
_MADE_BY = "llamarig render"


def manifest(wanted: Wanted) -> dict[str, Any]:
    """What the files are and what stands beside them; secrets only by place and client."""
    data = wanted.to_json()
    return {
        "schema": 1,
        "made-by": _MADE_BY,
        "host": wanted.host,
        "release": wanted.release.id,
        "files": {
            file.path: {
                "sha256": file.sha256,
                "mode": file.mode,
                "owner": file.owner,
                "group": file.group,
                "restarts": list(file.restarts),
            }
            for file in all_files(wanted)
        },
        "directories": {
            path: {"mode": mode, "owner": owner, "group": group} for path, mode, owner, group in wanted.directories
        },
        "users": data["users"],
        "packages": data["packages"],
        "driver": _driver(data["driver"]),
        "credentials": data["credentials"],
        "models": data["models"],
        "build": {"cmake": data["release"]["cmake"], "targets": data["release"]["targets"]},
    }


def all_files(wanted: Wanted) -> tuple[WantedFile, ...]:
    """The text files of every role, each path once."""
    parts = (wanted.driver, wanted.power)
    return (*wanted.files, *(file for part in parts if part is not None for file in part.files))


def _driver(data: dict[str, Any] | None) -> dict[str, Any] | None:
    if data is None:
        return None
    return {key: data[key] for key in ("source", "version", "flavour", "packages", "uri")}


def _former(out: Path) -> dict[str, Any]:
    """The manifest of a directory that ``render`` made before; empty for a new or empty directory."""
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise RigError(what="--out is not a directory", where=str(out), fix="name a new or empty directory")
    if not out.exists() or not any(out.iterdir()):
        return {}
    try:
        data = json.loads((out / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        data = None
    if not isinstance(data, dict) or data.get("made-by") != _MADE_BY or not isinstance(data.get("files"), dict):
        raise RigError(
            what="the directory is not empty and was not made by `llamarig render`",
            where=str(out),
            why="rendering replaces what it wrote before, and nothing else",
            fix="name a new or empty directory",
        )
    return data


def _place(out: Path, path: str) -> Path:
    """Where a file of the host lies below ``out``; a link or ``..`` on the way is refused."""
    parts = PurePosixPath(path).parts[1:]
    if not path.startswith("/") or not parts or ".." in parts:
        raise RigError(what=f"{path!r} is not an absolute path of a host", where=str(out))
    place = out
    for part in parts:
        place = place / part
        if place.is_symlink():
            raise RigError(what="a link stands where a rendered file belongs", where=str(place), fix="remove the link")
    return place


def _write(place: Path, content: str, mode: int) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    with naming(place), os.fdopen(os.open(place, flags, 0o600), "w", encoding="utf-8", newline="") as file:
        file.write(content)
        os.fchmod(file.fileno(), mode)


def write_tree(wanted: Wanted, out: Path) -> dict[str, Any]:
    """Write every file of ``wanted`` below ``out`` and return the manifest that lies beside them.

    Raises :class:`RigError` when ``out`` holds anything that ``render`` did not write.
    """
    for path in _former(out).get("files", {}):
        _place(out, path).unlink(missing_ok=True)
    out.mkdir(parents=True, exist_ok=True)
    for file in all_files(wanted):
        _write(_place(out, file.path), file.content, int(file.mode, 8))
    made = manifest(wanted)
    _write(_place(out, f"/{MANIFEST}"), json.dumps(made, indent=2, ensure_ascii=False) + "\n", 0o644)
    return made
