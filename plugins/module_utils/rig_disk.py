"""Writes on a host that are either whole or not there, and the hash of a file.

Standard library only. Everything opens with O_NOFOLLOW: a link that somebody put
where we expect a file of our own is an error, never a way out of our tree.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import json
import os
import stat
from pathlib import Path

CHUNK = 4 << 20
RENAME_EXCHANGE = 2
AT_FDCWD = -100


def open_plain(path: Path) -> int:
    """A descriptor of the regular file at ``path``; OSError (ELOOP) when it is a link."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return descriptor


def sha256_of(path: Path) -> str:
    """The sha256 of a regular file's content, in hex."""
    digest = hashlib.sha256()
    buffer = memoryview(bytearray(CHUNK))
    with os.fdopen(open_plain(path), "rb", buffering=0) as file:
        while count := file.readinto(buffer):
            digest.update(buffer[:count])
    return digest.hexdigest()


def identity(path: Path) -> list[int]:
    """``[device, inode, size, mtime_ns, ctime_ns]``: what must still hold for a recorded hash to be trusted."""
    info = path.stat(follow_symlinks=False)
    return [info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns]


def sync(path: Path) -> None:
    """Flush one file or directory to the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_whole(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Write a small file through a temporary neighbour and a rename."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            os.fchmod(file.fileno(), mode)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync(path.parent)


def relative_link(link: Path, target: Path, dry: bool = False) -> bool:
    """Make ``link`` a relative link to ``target``, replacing what is there in one step; True when it changed."""
    wanted = os.path.relpath(target, link.parent)
    if link.is_symlink() and str(link.readlink()) == wanted:
        return False
    if not dry:
        link.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        temporary = link.with_name(f".{link.name}.{os.getpid()}.tmp")
        temporary.unlink(missing_ok=True)
        temporary.symlink_to(wanted)
        temporary.replace(link)
        sync(link.parent)
    return True


def exchange(first: Path, second: Path) -> None:
    """Swap two directory entries in one step, so that neither name is ever missing.

    Falls back to three renames where the file system cannot swap.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    done = libc.renameat2(AT_FDCWD, os.fsencode(first), AT_FDCWD, os.fsencode(second), RENAME_EXCHANGE)
    if done == 0:
        return
    aside = second.with_name(f".{second.name}.aside")
    second.rename(aside)
    first.rename(second)
    aside.rename(first)


def recorded_hash(record: Path, path: Path) -> str | None:
    """The hash that the record holds for ``path``, when the file's stat tuple is still the recorded one."""
    try:
        entry = json.loads(record.read_text())["files"][str(path)]
        held = str(entry["sha256"]) if list(entry["stat"]) == identity(path) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return held
