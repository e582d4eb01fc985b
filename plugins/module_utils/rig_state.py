"""A state of a host to go back to: the release and small files and links, as JSON that root alone reads."""

from __future__ import annotations

import grp
import json
import os
import pwd
import shutil
import stat
from pathlib import Path
from typing import Any

from ansible.module_utils.rig_disk import relative_link, write_whole
from ansible.module_utils.rig_files import UnusualFileError, read_json

MAX_FILE = 4 << 20
MAX_STATE = 64 << 20
WANTED = "/var/lib/llamarig/wanted.json"
"""What was wanted when a state was proven; it belongs to the state and does not run."""


def saved(path: Path) -> dict[str, Any]:
    """A file or link as it can be put back; ``absent`` when it is not there or nothing of ours."""
    if path.is_symlink():
        return {"path": str(path), "absent": False, "link": str(path.readlink())}
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return {"path": str(path), "absent": True}
    with os.fdopen(descriptor, "rb") as file:
        info = os.fstat(file.fileno())
        if not stat.S_ISREG(info.st_mode) or info.st_size > MAX_FILE:
            return {"path": str(path), "absent": True}
        content = file.read().decode("utf-8", "surrogateescape")
    return {
        "path": str(path),
        "absent": False,
        "content": content,
        "mode": stat.S_IMODE(info.st_mode),
        "owner": _name(pwd.getpwuid, info.st_uid),
        "group": _name(grp.getgrgid, info.st_gid),
    }


def _name(lookup: Any, number: int) -> str:
    try:
        return str(lookup(number)[0])
    except KeyError:
        return "root"


def read_state(path: Path) -> dict[str, Any] | None:
    """A kept state; None when there is none, or something else in its place: a FIFO, a link, other content."""
    try:
        content = read_json(str(path), MAX_STATE)
    except UnusualFileError:
        return None
    well_formed = (
        isinstance(content, dict)
        and isinstance(content.get("release"), str)
        and isinstance(content.get("files"), list)
        and all(_fit(entry) for entry in content["files"])
    )
    return content if well_formed else None


def malformed(state: Path) -> list[str]:
    """Kept states of a host that are there and cannot be read as such."""
    paths = [state / f"{name}.json" for name in ("held", "proven", "former")]
    return [str(path) for path in paths if os.path.lexists(path) and read_state(path) is None]


def _fit(entry: Any) -> bool:
    """Whether an entry can be put back."""
    if not isinstance(entry, dict) or not isinstance(path := entry.get("path"), str) or not path.startswith("/"):
        return False
    if not isinstance(absent := entry.get("absent"), bool):
        return False
    if absent or isinstance(entry.get("link"), str):
        return True
    return isinstance(entry.get("mode"), int) and all(
        isinstance(entry.get(key), str) for key in ("content", "owner", "group")
    )


def write_state(path: Path, content: dict[str, Any]) -> None:
    """A state for root's eyes alone."""
    write_whole(path, json.dumps(content).encode(), 0o600)


def things(state: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The files and links of a state that are there, by path."""
    return {entry["path"]: entry for entry in state["files"] if not entry.get("absent")}


def alike(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two states run the same; the document that says what was wanted may differ."""
    first, second = things(one), things(other)
    for each in (first, second):
        each.pop(WANTED, None)
    return one["release"] == other["release"] and first == second


def without(state: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """The state, and that what only the other one has is not there."""
    mine = things(state)
    absent = [{"path": path, "absent": True} for path in things(other) if path not in mine]
    return state | {"files": [*mine.values(), *absent]}


def as_wanted(entry: dict[str, Any]) -> dict[str, Any]:
    """A file in the words of the wanted state, as it can be put back."""
    kept = {key: str(entry[key]) for key in ("path", "content", "owner", "group")}
    return {**kept, "absent": False, "mode": int(str(entry["mode"]), 8)}


def begun(path: Path, release: str) -> bool:
    """Whether whoever held the state in ``path`` has changed anything of what runs: the release is another than
    ``release`` (the current one), a file is, or it was started. What cannot be told counts as begun."""
    held = read_state(path)
    if held is None or held.get("started") or held["release"] != release:
        return True
    try:
        return any(saved(Path(entry["path"])) != entry for entry in held["files"])
    except (OSError, ValueError):
        return True


def put_back(entry: dict[str, Any]) -> bool:
    """Make one file what it was; True when it was not."""
    path = Path(entry["path"])
    now = saved(path)
    if now == entry:
        return False
    if entry["absent"]:
        path.unlink(missing_ok=True)
    elif "link" in entry:
        relative_link(path, path.parent / entry["link"])
    else:
        write_whole(path, entry["content"].encode("utf-8", "surrogateescape"), entry["mode"])
        shutil.chown(path, entry["owner"], entry["group"])
    return True
