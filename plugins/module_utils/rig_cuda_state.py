"""What a CUDA toolkit's manifest says, and whether its directory still is what the manifest says."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from pathlib import Path
from typing import Any

from ansible.module_utils.rig_disk import sha256_of
from ansible.module_utils.rig_files import (
    UnusualFileError,
    describe,
    lstat,
    owner_name,
    read_link,
    read_small,
    stat_tuple,
)

MANIFEST = "manifest.json"
_LARGEST = 16 << 20
"""Bytes of a manifest."""
_MOST = 60_000
"""Files that are looked at."""
_TOLD = 20
"""Differences that are handed on; the rest is counted."""
_OPEN = 0o022


def read_manifest(prefix: str) -> tuple[dict[str, Any], str]:
    """The manifest and its sha256; :class:`UnusualFileError` when it is none."""
    data = read_small(f"{prefix}/{MANIFEST}", _LARGEST)
    try:
        found = json.loads(data)
        whole = isinstance(found["files"], dict) and isinstance(found["links"], dict) and isinstance(found["id"], str)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UnusualFileError(f"is no manifest: {error}") from error
    if not whole:
        raise UnusualFileError("is no manifest")
    return found, hashlib.sha256(data).hexdigest()


def entries(prefix: str) -> tuple[dict[str, os.stat_result], dict[str, str], list[str]]:
    """Files with their stat, links with their targets, and directories, all below the prefix."""
    files: dict[str, os.stat_result] = {}
    links: dict[str, str] = {}
    folders = [""]
    for at in folders:
        with os.scandir(f"{prefix}/{at}") as found:
            for entry in found:
                name = f"{at}/{entry.name}".lstrip("/")
                if entry.is_symlink():
                    links[name] = read_link(entry.path)
                elif entry.is_dir(follow_symlinks=False):
                    folders.append(name)
                else:
                    files[name] = entry.stat(follow_symlinks=False)
        if len(files) > _MOST:
            break
    return files, links, folders


def differences(prefix: str, manifest: dict[str, Any], deep: bool = False) -> list[str]:
    """What is not as it was installed. Unless ``deep``, a file whose stat tuple is the noted one is not read."""
    files, links, folders = entries(prefix)
    files.pop(MANIFEST, None)
    wrong = [f"its directory {name or 'itself'} is open to others" for name in folders if _is_open(f"{prefix}/{name}")]
    for name, noted in sorted(manifest["files"].items()):
        info = files.pop(name, None)
        if info is None:
            wrong.append(f"{name} is not there")
        elif said := _file_wrong(f"{prefix}/{name}", info, noted, deep):
            wrong.append(f"{name} {said}")
    wrong += [
        f"{name} leads to {links.get(name, 'nothing')}"
        for name, target in sorted(manifest["links"].items())
        if links.get(name) != target
    ]
    added = sorted({*files, *(links.keys() - manifest["links"].keys())})
    return wrong + [f"{name} was added" for name in added]


def _is_open(path: str) -> bool:
    info = os.lstat(path)
    return info.st_uid != os.geteuid() or bool(info.st_mode & _OPEN)


def _file_wrong(path: str, info: os.stat_result, noted: Any, deep: bool) -> str:
    if not stat.S_ISREG(info.st_mode):
        return "is no file"
    if info.st_uid != os.geteuid() or info.st_mode & (_OPEN | 0o7000):
        return f"belongs to {owner_name(info.st_uid)} with mode {stat.S_IMODE(info.st_mode):04o}"
    if not deep and isinstance(noted, dict) and noted.get("stat") == stat_tuple(info):
        return ""
    return "" if isinstance(noted, dict) and sha256_of(Path(path)) == noted.get("sha256") else "was changed"


def look(prefix: str, deep: bool = False) -> dict[str, Any]:
    """One toolkit as ``rig_observe`` tells of it; the manifest without its list of files."""
    try:
        info = lstat(prefix)
        if info is None:
            return {"type": "absent"}
        entry = describe(info)
        if entry["type"] != "dir":
            return entry
        entry |= {"manifest": None, "manifest-sha256": None, "files": 0, "wrong": [], "wrong-count": 0}
        try:
            manifest, digest = read_manifest(prefix)
        except UnusualFileError as error:
            return entry | {"wrong": [f"{MANIFEST} {error}"], "wrong-count": 1}
        wrong = differences(prefix, manifest, deep)
        told = {key: value for key, value in manifest.items() if key not in ("files", "links")}
        return entry | {
            "manifest": told,
            "manifest-sha256": digest,
            "files": len(manifest["files"]),
            "wrong": wrong[:_TOLD],
            "wrong-count": len(wrong),
        }
    except (UnusualFileError, OSError) as error:
        return {"type": "unreadable", "error": str(error)}
