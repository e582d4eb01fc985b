"""Look at files without trusting them: no links followed, sizes capped, hashes remembered by stat tuple.

Standard library only; used by the modules ``rig_observe`` and ``rig_record`` on the host.
"""

from __future__ import annotations

import grp
import hashlib
import json
import os
import pwd
import stat
from pathlib import Path
from typing import Any

SMALL = 4 << 20
"""Bytes of a file that is expected to be small: a unit, a key file, a record."""
BLOCK = 1 << 20
"""Bytes read at once while hashing."""
_STAT_PARTS = 5
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""A link in a file's place is not followed, a FIFO in its place does not block."""


class UnusualFileError(Exception):
    """A path is not what it should be; the text says what it is instead."""


def stat_tuple(info: os.stat_result) -> list[int]:
    """What changes when a file's content does: device, inode, size, mtime and ctime in nanoseconds."""
    return [info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns]


def kind_of(mode: int) -> str:
    """The word for a file's type: file, dir, link, fifo, socket, device."""
    for word, test in (
        ("file", stat.S_ISREG),
        ("dir", stat.S_ISDIR),
        ("link", stat.S_ISLNK),
        ("fifo", stat.S_ISFIFO),
        ("socket", stat.S_ISSOCK),
    ):
        if test(mode):
            return word
    return "device"


def owner_name(uid: int) -> str:
    """A user's name, or the number when nobody has it."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def group_name(gid: int) -> str:
    """A group's name, or the number when nobody has it."""
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


def lstat(path: str) -> os.stat_result | None:
    """``os.lstat``, or None when nothing is there; a name that cannot be looked up raises :class:`UnusualFileError`."""
    try:
        return os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise UnusualFileError(f"cannot be looked at: {error}") from error


def read_link(path: str) -> str:
    """Where a link points to; OSError when it is none."""
    return str(Path(path).readlink())


def open_file(path: str, follow: bool = False) -> int:
    """A descriptor of a regular file. ``follow`` is for the kernel's own links under /proc only."""
    try:
        fd = os.open(path, _OPEN & ~os.O_NOFOLLOW if follow else _OPEN)
    except (OSError, ValueError) as error:
        raise UnusualFileError(f"cannot be opened: {error}") from error
    mode = os.fstat(fd).st_mode
    if not stat.S_ISREG(mode):
        os.close(fd)
        raise UnusualFileError(f"is a {kind_of(mode)}, not a file")
    return fd


def read_small(path: str, limit: int = SMALL) -> bytes:
    """The content of a regular file of at most ``limit`` bytes; anything else raises :class:`UnusualFileError`."""
    fd = open_file(path)
    with os.fdopen(fd, "rb", buffering=0) as file:
        parts: list[bytes] = []
        left = limit + 1
        try:
            while left > 0 and (part := file.read(min(left, BLOCK))):
                parts.append(part)
                left -= len(part)
        except OSError as error:
            raise UnusualFileError(f"cannot be read: {error}") from error
    if left <= 0:
        raise UnusualFileError(f"is larger than {limit} bytes")
    return b"".join(parts)


def read_kernel(path: str, limit: int = 32 << 20) -> bytes:
    """A file of /proc or /sys, at most ``limit`` bytes of it; empty when it is gone or refused."""
    try:
        with Path(path).open("rb") as file:
            return file.read(limit)
    except (OSError, ValueError):
        return b""


def read_json(path: str, limit: int = SMALL) -> Any:
    """A small JSON file; :class:`UnusualFileError` when it is none."""
    data = read_small(path, limit)
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise UnusualFileError(f"is no JSON: {error}") from error


def canonical_digest(record: dict[str, Any]) -> str:
    """sha256 of the canonical JSON of everything but ``digest``: sorted keys, no spaces, ASCII."""
    rest = {key: value for key, value in record.items() if key != "digest"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _digest(fd: int) -> str:
    sha = hashlib.sha256()
    buffer = bytearray(BLOCK)
    view = memoryview(buffer)
    with os.fdopen(fd, "rb", buffering=0, closefd=False) as file:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_SEQUENTIAL)
        while size := file.readinto(buffer):
            sha.update(view[:size])
    return sha.hexdigest()


class Hasher:
    """Hashes of files. A hash is believed again while the stat tuple it was taken with still holds.

    ``recorded`` is the ``files`` part of a record whose digest held. ``deep``
    believes only what this run itself has hashed.
    """

    def __init__(self, recorded: Any = None, deep: bool = False) -> None:
        self._known: dict[tuple[int, ...], tuple[str, bool]] = {}
        if not deep and isinstance(recorded, dict):
            for entry in recorded.values():
                self._learn(entry)

    def _learn(self, entry: Any) -> None:
        if not isinstance(entry, dict):
            return
        numbers, sha256 = entry.get("stat"), entry.get("sha256")
        if (
            isinstance(numbers, list)
            and len(numbers) == _STAT_PARTS
            and all(type(n) is int for n in numbers)
            and isinstance(sha256, str)
        ):
            self._known[tuple(numbers)] = (sha256, False)

    def known(self, info: os.stat_result) -> tuple[str, bool] | None:
        """The hash of a file with this stat tuple, and whether this run computed it."""
        return self._known.get(tuple(stat_tuple(info)))

    def of_open(self, fd: int) -> tuple[str | None, bool, os.stat_result]:
        """(sha256, computed just now, stat) of an open file; no hash when it changes meanwhile."""
        before = os.fstat(fd)
        if (known := self.known(before)) is not None:
            return known[0], known[1], before
        try:
            sha256 = _digest(fd)
        except OSError:
            return None, True, before
        after = os.fstat(fd)
        if stat_tuple(before) != stat_tuple(after):
            return None, True, after
        self._known[tuple(stat_tuple(after))] = (sha256, True)
        return sha256, True, after

    def of_path(self, path: str, follow: bool = False) -> tuple[str | None, bool, os.stat_result]:
        """The same for a path, which must be a regular file (else :class:`UnusualFileError`)."""
        fd = open_file(path, follow)
        try:
            return self.of_open(fd)
        finally:
            os.close(fd)

    def describe(self, path: str) -> dict[str, Any]:
        """A big file (a model, a binary) with its hash and stat tuple."""
        try:
            info = lstat(path)
            if info is None:
                return {"type": "absent"}
            entry = describe(info)
            if entry["type"] == "link":
                entry["target"] = read_link(path)
            if entry["type"] == "file":
                sha256, hashed, info = self.of_path(path)
                entry |= {"sha256": sha256, "size": info.st_size, "stat": stat_tuple(info), "hashed": hashed}
        except (UnusualFileError, OSError) as error:
            return {"type": "unreadable", "error": str(error)}
        return entry


def describe(info: os.stat_result) -> dict[str, Any]:
    """Type, mode, owner and group of something that is there."""
    return {
        "type": kind_of(info.st_mode),
        "mode": f"{stat.S_IMODE(info.st_mode):04o}",
        "owner": owner_name(info.st_uid),
        "group": group_name(info.st_gid),
    }
