"""Unpack a stranger's source archive without letting it reach outside its directory.

Only regular files, directories and links that stay inside the tree come out; what
else an archive may hold (absolute names, ``..``, devices, hard links, setuid bits,
duplicates, endless content) ends in :class:`RefusedError`.
"""

from __future__ import annotations

import os
import posixpath
import tarfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from ansible.module_utils.rig_tar_headers import bounded, members

MAX_NAME = 1024
DELETE = 0x7F


class RefusedError(Exception):
    """The archive or patch is not something that we use; the text says which part and why."""


@dataclass(frozen=True)
class Limits:
    """How much an archive may unfold to."""

    files: int = 200_000
    file_bytes: int = 1 << 30
    total_bytes: int = 4 << 30


def checked_name(name: str) -> PurePosixPath:
    """A member's name as a path; :class:`RefusedError` when it leads out or cannot be printed."""
    path = PurePosixPath(name)
    if not name or name.startswith("/") or ".." in path.parts or "\\" in name:
        raise RefusedError(f"member {name[:200]!r} has an absolute path or one that leaves the archive")
    if len(name) > MAX_NAME or any(ord(char) < ord(" ") or ord(char) == DELETE for char in name):
        raise RefusedError(f"member {name[:200]!r} has a name that is too long or holds control characters")
    return path


def checked_link(name: PurePosixPath, target: str) -> str:
    """Where a link leads; :class:`RefusedError` when that is outside the tree."""
    reached = posixpath.normpath(posixpath.join(str(name.parent), target))
    if target.startswith("/") or reached == ".." or reached.startswith("../"):
        raise RefusedError(f"link {str(name)!r} points outside the tree, to {target[:200]!r}")
    return target


@dataclass
class _Unpacker:
    dest: Path
    below: PurePosixPath
    limits: Limits
    files: int = 0
    total: int = 0
    top: str = ""

    def inside(self, member: tarfile.TarInfo) -> PurePosixPath | None:
        """The member's path below the wanted directory, or None when it lies elsewhere."""
        path = checked_name(member.name)
        if not path.parts:
            return None
        self.top = self.top or path.parts[0]
        if path.parts[0] != self.top:
            raise RefusedError(f"there is more than one top directory: {self.top!r} and {path.parts[0][:200]!r}")
        rest = PurePosixPath(*path.parts[1:])
        return rest.relative_to(self.below) if rest.is_relative_to(self.below) else None

    def count(self, member: tarfile.TarInfo) -> None:
        self.files += 1
        self.total += member.size
        if member.size > self.limits.file_bytes:
            raise RefusedError(
                f"member {member.name[:200]!r} has {member.size} bytes, allowed are {self.limits.file_bytes}"
            )
        if self.files > self.limits.files or self.total > self.limits.total_bytes:
            raise RefusedError(f"it unfolds to more than {self.limits.files} files or {self.limits.total_bytes} bytes")

    def make(self, tar: tarfile.TarFile, member: tarfile.TarInfo, path: PurePosixPath) -> None:
        """A directory or file of the tree."""
        if member.isdir():
            (self.dest / path).mkdir(parents=True, exist_ok=True)
            return
        if not path.parts:
            raise RefusedError(f"it has nothing below {member.name[:200]!r}, which is no directory")
        source = tar.extractfile(member)
        if source is not None:
            self.write(source, member, path)

    def write(self, source: IO[bytes], member: tarfile.TarInfo, path: PurePosixPath) -> None:
        target = self.dest / path
        target.parent.mkdir(parents=True, exist_ok=True)
        mode = 0o755 if member.mode & 0o111 else 0o644
        try:
            handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
        except FileExistsError:
            raise RefusedError(f"member {member.name[:200]!r} is there twice") from None
        with os.fdopen(handle, "wb") as file:
            left = member.size
            while left:
                block = source.read(min(left, 1 << 20))
                if not block:
                    raise RefusedError(f"member {member.name[:200]!r} ends early")
                file.write(block)
                left -= len(block)
            os.fchmod(file.fileno(), mode)
        os.utime(target, (member.mtime, member.mtime))


def refuse_kind(member: tarfile.TarInfo) -> None:
    """:class:`RefusedError` for everything but plain files, directories and links."""
    if member.mode & 0o7000 and not member.isdir():
        raise RefusedError(f"member {member.name[:200]!r} is setuid, setgid or sticky")
    if member.islnk():
        raise RefusedError(f"member {member.name[:200]!r} is a hard link")
    if not (member.isreg() or member.isdir() or member.issym()) or member.issparse():
        raise RefusedError(f"member {member.name[:200]!r} is a device, pipe or other special file")


def make_links(dest: Path, links: list[tuple[PurePosixPath, str]]) -> None:
    """Make the links, none of them through another, and follow each to its end: that must lie in the tree too."""
    for path, target in links:
        above = [dest / parent for parent in path.parents if parent.parts]
        if any(parent.is_symlink() for parent in above):
            raise RefusedError(f"member {str(path)!r} lies below a link")
        place = dest / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.exists() or place.is_symlink():
            raise RefusedError(f"member {str(path)!r} is there twice")
        place.symlink_to(target)
    inside = os.path.realpath(dest)
    for path, target in links:
        reached = os.path.realpath(dest / path)
        if reached != inside and not reached.startswith(f"{inside}/"):
            for made, _ in links:
                (dest / made).unlink()
            raise RefusedError(f"link {str(path)!r} points outside the tree by way of another link: {target[:200]!r}")


def unpack(
    archive: IO[bytes], dest: Path, subdir: str = "", limits: Limits | None = None, *, plain: bool = False
) -> None:
    """Unpack ``subdir`` of the open archive's single top directory into ``dest``, which must be empty.

    ``plain`` takes no compressed one. Links are made last, so that nothing is ever written through one. Raises
    :class:`RefusedError`, also when the archive is damaged or has no such directory.
    """
    work = _Unpacker(dest, PurePosixPath(subdir), limits or Limits())
    links: list[tuple[PurePosixPath, str]] = []
    try:
        with tarfile.open(fileobj=archive, mode="r|" if plain else "r|*", tarinfo=bounded()) as tar:
            for member in members(tar):
                work.count(member)
                path = work.inside(member)
                if path is None:
                    continue
                refuse_kind(member)
                if member.issym():
                    links.append((path, checked_link(path, member.linkname)))
                else:
                    work.make(tar, member, path)
        make_links(dest, links)
    except (tarfile.TarError, EOFError, OSError, ValueError, OverflowError, RecursionError) as error:
        raise RefusedError(f"it is not a whole tar archive: {error}") from error
    if not any(dest.iterdir()):
        raise RefusedError(f"it has nothing below {subdir or 'its top directory'!r}")
