"""What llamarig keeps on a host: files, releases, models, links, credentials, the record and the lock."""

from __future__ import annotations

import hmac
import os
import re
import time
from collections.abc import Collection
from typing import Any

from ansible.module_utils.rig_files import (
    SMALL,
    Hasher,
    UnusualFileError,
    canonical_digest,
    describe,
    lstat,
    read_json,
    read_link,
    read_small,
)

ROOT = "/opt/llamarig"
STATE = "/var/lib/llamarig"
RECORD = f"{STATE}/record.json"
LOCK = "/run/llamarig/lock"
HELD, FORMER = f"{STATE}/held.json", f"{STATE}/former.json"
RELEASE_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]{0,127}")
_CLIENT = re.compile(r"#\s*(?:client:?\s+)?(\S+)\s*")
_MOST_FILES = 4096
_DEEPEST = 4
UNITS = "/etc/systemd/system"
SETTINGS = ("/etc/llamarig/keys", "/etc/llamarig/services", "/etc/llamarig/templates")
"""Directories of which llamarig alone writes the files."""
HEADER = b"# Written by llamarig for the service "
"""How every unit of ours begins."""
_KEPT = 64 << 20
"""Bytes of a kept state, which holds the text of units and settings."""
_TEXT = 256 << 10
"""Bytes of a changed file that are sent along for a diff."""


def record(path: str) -> tuple[Any, str]:
    """The record and its state: absent, ok, edited (its digest does not hold) or unreadable."""
    try:
        if lstat(path) is None:
            return None, "absent"
        data = read_json(path, SMALL)
        if not isinstance(data, dict):
            return None, "unreadable"
        return data, "ok" if data.get("digest") == canonical_digest(data) else "edited"
    except (UnusualFileError, RecursionError, ValueError):
        return None, "unreadable"


def files_of(record: Any) -> dict[str, Any]:
    """The ``files`` of a record, empty when it has none."""
    files = record.get("files") if isinstance(record, dict) else None
    return files if isinstance(files, dict) else {}


def settings_of(record: Any) -> list[str]:
    """Units and settings that an apply wrote, this one or an earlier, so that those that nobody wants are found."""
    former = record.get("former") if isinstance(record, dict) else None
    left = former.get("files") if isinstance(former, dict) else None
    names = [*files_of(record), *(left if isinstance(left, list) else ())]
    return [name for name in names if isinstance(name, str) and name.startswith("/etc/")]


def left_units(known: Collection[str], units: str = UNITS) -> list[str]:
    """Units that llamarig wrote and that are not among the known ones, of an apply that was killed, say."""
    found = []
    for path in _names(units):
        name = path.rpartition("/")[2]
        if path in known or not (name.startswith("llama-") and name.endswith(".service")):
            continue
        try:
            ours = read_small(path, SMALL).startswith(HEADER)
        except UnusualFileError:
            continue
        found += [path] if ours else []
    return found


def left_settings(known: Collection[str], places: Collection[str] = SETTINGS) -> list[str]:
    """Files in our own directories that are not among the known ones."""
    return [path for place in places for path in _names(place) if path not in known]


def _names(place: str) -> list[str]:
    """Files and links in a directory, by full path."""
    try:
        with os.scandir(place) as entries:
            return sorted(entry.path for entry in entries if not entry.is_dir(follow_symlinks=False))[:_MOST_FILES]
    except OSError:
        return []


def small_file(path: str, hasher: Hasher, expected: Any) -> dict[str, Any]:
    """A text file of ours. Its lines come along only where its hash is not the expected one."""
    try:
        info = lstat(path)
        if info is None:
            return {"type": "absent"}
        entry = describe(info)
        if entry["type"] == "link":
            entry["target"] = read_link(path)
        if entry["type"] != "file":
            return entry
        entry["size"] = info.st_size
        if info.st_size > SMALL:
            return entry | {"sha256": None}
        entry["sha256"] = hasher.of_path(path)[0]
        if isinstance(expected, str) and entry["sha256"] != expected and info.st_size <= _TEXT:
            entry["lines"] = read_small(path, _TEXT).decode("utf-8", "replace").splitlines()
    except (UnusualFileError, OSError) as error:
        return {"type": "unreadable", "error": str(error)}
    return entry


def directory(path: str) -> dict[str, Any]:
    """Type, mode and owner of a directory."""
    try:
        info = lstat(path)
    except UnusualFileError as error:
        return {"type": "unreadable", "error": str(error)}
    return {"type": "absent"} if info is None else describe(info)


def link(path: str) -> str | None:
    """Where a link points to; None when it is none."""
    try:
        return read_link(path)
    except (OSError, ValueError):
        return None


def credential(path: str, salt: str = "") -> dict[str, Any]:
    """A key file's place, mode and clients; never a key. A comment line names the client of the next key.

    With a ``salt`` (hex) also the HMAC-SHA256 of the whole file, which says nothing to whoever has not the salt.
    """
    try:
        info = lstat(path)
        if info is None:
            return {"type": "absent"}
        entry = describe(info)
        if entry["type"] != "file":
            return entry
        data = read_small(path, 1 << 20)
    except UnusualFileError as error:
        return {"type": "unreadable", "error": str(error)}
    if salt:
        entry["digest"] = hmac.new(bytes.fromhex(salt), data, "sha256").hexdigest()
    clients: list[str] = []
    keys = 0
    name = ""
    # Lines as the server reads them: other characters that end a line for Python end none there.
    for line in data.decode("utf-8", "replace").split("\n"):
        if line.startswith("#"):
            match = _CLIENT.fullmatch(line)
            name = match[1] if match else ""
        elif line:
            keys += 1
            clients += [name] if name else []
            name = ""
    return entry | {"clients": clients, "keys": keys}


def release(base: str, hasher: Hasher) -> dict[str, Any] | None:
    """provenance.json and every file of one release; None when there is no such directory."""
    try:
        info = lstat(base)
    except UnusualFileError:
        return None
    if info is None or describe(info)["type"] != "dir":
        return None
    provenance = f"{base}/provenance.json"
    entry: dict[str, Any] = {"provenance": None, "provenance-sha256": None, "files": {}}
    entry["directories"] = {name: directory(f"{base}/{name}".rstrip("/")) for name in ("", "bin", "lib")}
    try:
        entry["provenance-sha256"] = hasher.of_path(provenance)[0]
        entry["provenance"] = read_json(provenance, SMALL)
    except UnusualFileError:
        pass
    for path in sorted(walk(base)):
        if path != provenance:
            entry["files"][path[len(base) + 1 :]] = hasher.describe(path)
    return entry


def walk(base: str, depth: int = 0) -> list[str]:
    """Everything but directories below ``base``, to a limit; links are listed, never followed."""
    found: list[str] = []
    try:
        with os.scandir(base) as entries:
            for entry in entries:
                if len(found) >= _MOST_FILES:
                    break
                if entry.is_dir(follow_symlinks=False):
                    found += walk(entry.path, depth + 1) if depth < _DEEPEST else []
                else:
                    found.append(entry.path)
    except OSError:
        pass
    return found[:_MOST_FILES]


def release_ids(wanted: Any, current: str | None, recorded: Any) -> list[str]:
    """Which releases are looked at: the wanted one, the current one and the record's two."""
    ids: list[str] = []
    candidates = [wanted, (current or "").removeprefix("releases/")]
    if isinstance(recorded, dict):
        candidates += [recorded.get("release"), recorded.get("former-release")]
    for name in candidates:
        if isinstance(name, str) and RELEASE_ID.fullmatch(name) and name not in ids:
            ids.append(name)
    return ids


def lock(path: str) -> dict[str, Any] | None:
    """What the lock says of its holder, and how many seconds ago it was renewed; None when there is none."""
    try:
        info = lstat(path)
        if info is None:
            return None
        data = read_json(path, 1 << 16)
    except UnusualFileError as error:
        return {"error": str(error)}
    return (data if isinstance(data, dict) else {}) | {"age-s": round(time.time() - info.st_mtime, 1)}


def state(path: str) -> dict[str, Any] | None:
    """Release, kernel, run, controller and time of a kept state (``held.json``, ``former.json``); None without one."""
    try:
        if lstat(path) is None:
            return None
        data = read_json(path, _KEPT)
    except (UnusualFileError, RecursionError, ValueError):
        return {}
    kept = data if isinstance(data, dict) else {}
    return {key: kept[key] for key in ("release", "kernel", "run", "from", "at") if isinstance(kept.get(key), str)}
