"""Which processes have something of ours: as their program, mapped, open, as a directory, or on their command line."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ansible.module_utils.rig_files import read_kernel, read_link

_MAPS = 6
"""Fields of a line of maps."""
_PSEUDO = ("/dev/", "/proc/", "/sys/", "/memfd:", "/SYSV")
"""What names no file of a disk."""

User = dict[str, Any]
"""``pid`` and ``command`` of a process."""


@dataclass
class Uses:
    """What all processes hold."""

    paths: dict[str, User] = field(default_factory=dict)
    """Paths below our trees."""
    words: dict[str, User] = field(default_factory=dict)
    """Words of command lines that name a path below our trees."""
    identities: dict[tuple[int, int], User] = field(default_factory=dict)
    inodes: dict[int, User] = field(default_factory=dict)
    """Held where no device could be learned."""
    units: dict[str, User] = field(default_factory=dict)
    """Units of our jobs in which a process runs."""
    uids: dict[int, User] = field(default_factory=dict)
    blind: list[User] = field(default_factory=list)
    """Processes that could not be looked into."""

    def of(self, path: str, inodes: set[tuple[int, int]], unit: str = "") -> User | None:
        """Who holds a thing, or a part of it; None when nobody does."""
        if unit in self.units:
            return self.units[unit]
        for held, user in [*self.paths.items(), *self.words.items()]:
            if held == path or held.startswith(f"{path}/"):
                return user
        for identity in inodes:
            known = self.identities.get(identity) or self.inodes.get(identity[1])
            if known is not None:
                return known
        return None


class Scan:
    """One look at all processes. ``trees`` are paths under which things of ours lie, ``inodes`` their files."""

    def __init__(self, trees: list[str], inodes: set[tuple[int, int]], proc: str = "/proc") -> None:
        self._trees = tuple(f"{tree}/" for tree in trees)
        self._inodes = {inode for _, inode in inodes}
        self._proc = proc
        self.uses = Uses()

    def run(self) -> Uses:
        """Everything that a process other than this one holds."""
        for place in Path(self._proc).iterdir():
            if place.name.isdecimal() and int(place.name) != os.getpid():
                self._process(int(place.name))
        return self.uses

    def _process(self, pid: int) -> None:
        base = f"{self._proc}/{pid}"
        comm = read_kernel(f"{base}/comm", 64).decode("utf-8", "replace").strip()
        user = {"pid": pid, "command": comm}
        try:
            for link in ("exe", "cwd", "root"):
                self._path(_link(f"{base}/{link}"), user)
            self._maps(base, user)
            self._open(base, user)
        except PermissionError:
            if not _ended(base):
                self.uses.blind.append(user)
        except OSError:
            return  # it ended meanwhile
        for uid in _uids(base):
            self.uses.uids.setdefault(uid, user)
        for word in read_kernel(f"{base}/cmdline", 1 << 20).split(b"\0"):
            self._word(os.fsdecode(word), user)
        for line in read_kernel(f"{base}/cgroup", 1 << 14).decode("utf-8", "replace").splitlines():
            unit = line.rpartition("/")[2].removesuffix(".service")
            if unit.startswith(("llamarig-build-", "llamarig-fetch-")):
                self.uses.units.setdefault(unit, user)

    def _path(self, path: str, user: User) -> bool:
        path = path.removesuffix(" (deleted)")
        if path.startswith(self._trees):
            self.uses.paths.setdefault(path, user)
            return True
        return False

    def _word(self, word: str, user: User) -> None:
        """A word such as ``--model=/var/lib/…``: what follows may be read once and closed, and read again."""
        for tree in self._trees:
            if (at := word.find(tree)) >= 0:
                self.uses.words.setdefault(os.path.normpath(word[at:]), user)

    def _maps(self, base: str, user: User) -> None:
        with Path(f"{base}/maps").open("rb") as file:
            lines = file.read(64 << 20).splitlines()
        for line in lines:
            fields = line.split(None, 5)
            if len(fields) < _MAPS or fields[4] == b"0" or self._path(os.fsdecode(fields[5]), user):
                continue
            if (inode := int(fields[4])) in self._inodes:
                self._identity(f"{base}/map_files/{fields[0].decode()}", inode, user)

    def _open(self, base: str, user: User) -> None:
        for place in Path(f"{base}/fd").iterdir():
            target = _link(str(place))
            if not target.startswith("/") or target.startswith(_PSEUDO) or self._path(target, user):
                continue
            inode = _inode(f"{base}/fdinfo/{place.name}")
            if inode is None or inode in self._inodes:
                self._identity(str(place), inode, user)

    def _identity(self, link: str, inode: int | None, user: User) -> None:
        """By device and inode: a container or another mount namespace has other paths for the same file."""
        try:
            info = Path(link).stat()
        except OSError:
            if inode is not None:
                self.uses.inodes.setdefault(inode, user)
        else:
            self.uses.identities.setdefault((info.st_dev, info.st_ino), user)


def _link(path: str) -> str:
    """Where a link of the kernel leads; empty when it leads nowhere. PermissionError reaches who asked."""
    try:
        return read_link(path)
    except FileNotFoundError:
        return ""


def _inode(path: str) -> int | None:
    """The inode that a descriptor's information tells of (since Linux 5.14); None where it does not."""
    for line in read_kernel(path, 1 << 12).splitlines():
        if line.startswith(b"ino:"):
            return int(line[4:])
    return None


def _uids(base: str) -> set[int]:
    """Real, effective, saved and file system's user (proc_pid_status(5)): the directory itself may be root's."""
    for line in read_kernel(f"{base}/status", 1 << 16).splitlines():
        if line.startswith(b"Uid:"):
            return {int(number) for number in line.split()[1:]}
    return set()


def _ended(base: str) -> bool:
    """Whether a process is gone, or waits for its parent to hear of its end."""
    return read_kernel(f"{base}/stat", 4096).rpartition(b")")[2].split()[:1] in ([], [b"Z"], [b"X"])
