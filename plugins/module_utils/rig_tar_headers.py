"""Read the members of a stranger's tar in bounded memory: headers too are content that somebody else has written.

Python's tarfile reads an extended header whole, whatever size it claims, gives each member a copy of every global
record, and keeps all members that it has seen. The controller has the same (llamarig/converge/store/tar_headers.py).
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from typing import NoReturn

MAX_HEADER = 64 << 10
"""Bytes of the extended header of one member: its names, 1024 characters at most, and some attributes."""
MAX_GLOBAL = 4 << 10
"""Bytes of all global headers together; git writes one of 52."""
MAX_MEMBERS = 400_000

_EXTENDED = (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)


def bounded() -> type[tarfile.TarInfo]:
    """What ``tarfile.open`` takes as ``tarinfo``, for one archive; it raises :class:`tarfile.ReadError`."""

    class Bounded(tarfile.TarInfo):
        said = 0
        """Bytes of global headers so far."""

        @classmethod
        def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Bounded:
            info = super().frombuf(buf, encoding, errors)
            _limited(info)
            if info.type == tarfile.XGLTYPE:
                cls.said += info.size
                if cls.said > MAX_GLOBAL:
                    raise tarfile.ReadError(f"its global headers claim {cls.said} bytes, allowed are {MAX_GLOBAL}")
            return info

        def _proc_gnusparse_10(self, *_given: object) -> NoReturn:
            """A map of holes in front of the content, as long as it likes; the test fails where this has no effect."""
            raise tarfile.ReadError("a member is sparse")

    return Bounded


def _limited(info: tarfile.TarInfo) -> None:
    if info.size < 0:
        raise tarfile.ReadError(f"a header claims {info.size} bytes")
    if info.type == tarfile.GNUTYPE_SPARSE:
        raise tarfile.ReadError("a member is sparse")
    if info.type in _EXTENDED and info.size > MAX_HEADER:
        raise tarfile.ReadError(f"an extended header claims {info.size} bytes, allowed are {MAX_HEADER}")


def members(tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """Each member once, none of them kept. Raises :class:`tarfile.ReadError` for too many."""
    count = 0
    while (member := tar.next()) is not None:
        tar.members.clear()  # type: ignore[attr-defined] # every Python has it, and no stub does
        count += 1
        if member.size < 0 or count > MAX_MEMBERS:
            raise tarfile.ReadError(f"member {count} has {member.size} bytes, and {MAX_MEMBERS} members are allowed")
        yield member
