"""Take a thing of ours away: by descriptors, so that no link leads elsewhere, and never across a mount."""

from __future__ import annotations

import errno
import os
import stat

from ansible.module_utils.rig_files import read_kernel
from ansible.module_utils.rig_gc_dirs import DEEPEST, DIRECTORY, NotOursError, open_directory

RENAMED = ("release", "toolkit", "build")
"""Taken apart under another name: a run that is killed meanwhile leaves nothing that looks whole."""


def remove(kind: str, path: str, identity: list[int]) -> bool:
    """Remove one thing that still is the one that was listed; False when it is not there any more.

    Raises :class:`NotOursError` when something else lies there by now, or something is mounted in it; OSError when it
    cannot be removed.
    """
    place, name = os.path.split(path)
    handle = open_directory(place)
    try:
        try:
            info = os.stat(name, dir_fd=handle, follow_symlinks=False)
        except FileNotFoundError:
            return False
        if [info.st_dev, info.st_ino] != identity:
            raise NotOursError("something else has taken its place")
        if not stat.S_ISDIR(info.st_mode):
            os.unlink(name, dir_fd=handle)
        elif kind == "build-cache":
            # The directory itself is wanted, with its owner and mode.
            _empty(handle, name, None, 0)
        else:
            mount = mount_id(handle)
            if kind in RENAMED:
                name = _aside(handle, name)
            _tree(handle, name, mount, 0)
        os.fsync(handle)
    finally:
        os.close(handle)
    if kind == "link":
        _unless_used(place)
    return True


def mount_id(handle: int) -> str:
    """The kernel's number of the mount that a descriptor lies on: a bind mount has another though the device is the
    same (proc_pid_fdinfo(5))."""
    lines = read_kernel(f"/proc/self/fdinfo/{handle}", 1 << 12).decode("ascii", "replace").splitlines()
    return next((line.split()[1] for line in lines if line.startswith("mnt_id:")), "")


def _aside(handle: int, name: str) -> str:
    """Rename to the form of what is not whole; the old name when that is taken by something."""
    begun = f".{name}.tmp"
    try:
        os.rename(name, begun, src_dir_fd=handle, dst_dir_fd=handle)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            return name
        raise
    return begun


def _tree(parent: int, name: str, mount: str, depth: int) -> None:
    _empty(parent, name, mount, depth)
    os.rmdir(name, dir_fd=parent)


def _empty(parent: int, name: str, mount: str | None, depth: int) -> None:
    """Remove what is in a directory; ``mount`` is the one that it must lie on, None for its own."""
    if depth > DEEPEST:
        raise NotOursError(f"directories nest deeper than {DEEPEST} in it")
    handle = os.open(name, DIRECTORY, dir_fd=parent)
    try:
        own = mount_id(handle)
        if mount is not None and own != mount:
            raise NotOursError("something is mounted in it")
        with os.scandir(handle) as entries:
            names = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        for below, folder in names:
            if folder:
                _tree(handle, below, own, depth + 1)
            else:
                os.unlink(below, dir_fd=handle)
    finally:
        os.close(handle)


def _unless_used(place: str) -> None:
    """Remove a directory of links when the last one has gone."""
    parent, name = os.path.split(place)
    handle = open_directory(parent)
    try:
        os.rmdir(name, dir_fd=handle)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT):
            raise
    finally:
        os.close(handle)
