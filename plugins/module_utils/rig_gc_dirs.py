"""Directories of ours by descriptor: opened without following a link, weighed without crossing a mount."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass, field

from ansible.module_utils.rig_files import kind_of, read_kernel

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
DEEPEST = 200
_BLOCK = 512
"""Bytes of a block in ``st_blocks``, stat(2)."""


class NotOursError(Exception):
    """What lies there cannot be looked into or taken apart; the text says why."""


def open_directory(path: str) -> int:
    """A descriptor of a directory, no part of whose path is a link; :class:`NotOursError` otherwise."""
    handle = os.open("/", DIRECTORY)
    for part in path.strip("/").split("/"):
        try:
            below = os.open(part, DIRECTORY, dir_fd=handle)
        except OSError as error:
            what = _what(handle, part)
            raise NotOursError(f"{part!r} in it is {what}" if what else error.strerror or str(error)) from error
        finally:
            os.close(handle)
        handle = below
    return handle


def _what(handle: int, name: str) -> str:
    """What stands where a directory was expected; empty where nothing does, or a directory."""
    try:
        info = os.stat(name, dir_fd=handle, follow_symlinks=False)
    except OSError:
        return ""
    kind = kind_of(info.st_mode)
    return "" if kind == "dir" else f"a {kind}"


@dataclass
class Weight:
    """What a thing takes, and what in it must not be touched."""

    used: int = 0
    """Bytes on the disk that removing it gives back; a file with a name elsewhere gives none."""
    inodes: set[tuple[int, int]] = field(default_factory=set)
    odd: str = ""
    """Why it cannot be removed."""
    _names: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)

    def add(self, info: os.stat_result) -> None:
        """Count a name of a file."""
        identity = (info.st_dev, info.st_ino)
        self.inodes.add(identity)
        left, size = self._names.get(identity, (info.st_nlink, info.st_blocks * _BLOCK))
        self._names[identity] = (left - 1, size)
        if left == 1 or stat.S_ISDIR(info.st_mode):
            self.used += size


def weigh(handle: int, name: str) -> Weight:
    """Weigh what lies under ``name`` in an open directory."""
    found = Weight()
    try:
        info = os.stat(name, dir_fd=handle, follow_symlinks=False)
        found.add(info)
        if stat.S_ISDIR(info.st_mode):
            _weigh_below(handle, name, info.st_dev, found, 0)
    except OSError as error:
        found.odd = found.odd or f"it cannot be looked at: {error.strerror}"
    return found


def _weigh_below(parent: int, name: str, device: int, found: Weight, depth: int) -> None:
    if depth > DEEPEST:
        found.odd = f"directories nest deeper than {DEEPEST} in it"
        return
    handle = os.open(name, DIRECTORY, dir_fd=parent)
    try:
        if os.fstat(handle).st_dev != device:
            found.odd = "something is mounted in it"
            return
        with os.scandir(handle) as entries:
            for entry in entries:
                info = entry.stat(follow_symlinks=False)
                found.add(info)
                if stat.S_ISDIR(info.st_mode):
                    _weigh_below(handle, entry.name, device, found, depth + 1)
    finally:
        os.close(handle)


def mount_points(mountinfo: str = "/proc/self/mountinfo") -> list[str]:
    """Every place where something is mounted, as this process sees it (proc_pid_mountinfo(5))."""
    lines = read_kernel(mountinfo).decode("utf-8", "surrogateescape").splitlines()
    points = [line.split()[4] for line in lines]
    return [re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), point) for point in points]
