"""A forward-only reader over a file: little buffers, no seeking back, nothing past the end."""

from __future__ import annotations

from struct import Struct
from typing import BinaryIO

from llamarig.errors import RigError

_CHUNK = 1 << 20
_U64 = Struct("<Q")


class HeaderTruncatedError(RigError):
    """The bytes at hand end inside the header; a caller with more of them may try again."""


class Cursor:
    """Reads little-endian values one after another; every read is checked against the file's size."""

    def __init__(self, stream: BinaryIO, size: int, where: str) -> None:
        self._stream = stream
        self._size = size
        self._base = 0
        self._buffer = b""
        self._at = 0
        self.where = where

    @property
    def position(self) -> int:
        """Bytes from the start of the file."""
        return self._base + self._at

    @property
    def left(self) -> int:
        """Bytes between here and the end of the file."""
        return self._size - self.position

    def truncated(self, what: str) -> HeaderTruncatedError:
        """The error for a file that ends before ``what`` is complete."""
        return HeaderTruncatedError(
            what=f"the file ends inside its header, at byte {self._size:,}, while reading {what}",
            where=self.where,
            why="the file is cut off, or a length in it is wrong",
            fix="fetch the file again and compare its sha256 with the publisher's",
        )

    def _fill(self, need: int, what: str) -> None:
        """Have ``need`` bytes in the buffer."""
        rest = self._buffer[self._at :]
        parts = [rest]
        have = len(rest)
        while have < need:
            block = self._stream.read(max(need - have, _CHUNK))
            if not block:
                raise self.truncated(what)
            parts.append(block)
            have += len(block)
        self._base += self._at
        self._at = 0
        self._buffer = b"".join(parts)

    def take(self, count: int, what: str) -> bytes:
        """The next ``count`` bytes."""
        if count > self.left:
            raise self.truncated(what)
        if self._at + count > len(self._buffer):
            self._fill(count, what)
        start = self._at
        self._at += count
        return self._buffer[start : self._at]

    def unpack(self, form: Struct, what: str) -> int | float | bool:
        """The next value of a :class:`~struct.Struct` with one field."""
        value: int | float | bool = form.unpack(self.take(form.size, what))[0]
        return value

    def u64(self, what: str) -> int:
        """The next unsigned 64-bit number."""
        return int(_U64.unpack(self.take(8, what))[0])

    def skip(self, count: int, what: str) -> None:
        """Go ``count`` bytes forward without keeping them."""
        if count > self.left:
            raise self.truncated(what)
        inside = len(self._buffer) - self._at
        if count <= inside:
            self._at += count
            return
        target = self.position + count
        try:
            self._stream.seek(count - inside, 1)
        except (OSError, ValueError):
            self._read_away(count - inside, what)
        self._base, self._at, self._buffer = target, 0, b""

    def _read_away(self, count: int, what: str) -> None:
        while count:
            block = self._stream.read(min(count, _CHUNK))
            if not block:
                raise self.truncated(what)
            count -= len(block)

    def skip_strings(self, count: int, what: str) -> None:
        """Walk over ``count`` strings, each with its length before it, without making any of them.

        A vocabulary has hundreds of thousands of them: the loop keeps to local names.
        """
        unpack = _U64.unpack_from
        while count:
            if len(self._buffer) - self._at < _U64.size:
                if self.left < _U64.size:
                    raise self.truncated(what)
                self._fill(_U64.size, what)
            buffer, at, last = self._buffer, self._at, len(self._buffer) - _U64.size
            while count and at <= last:
                at += 8 + unpack(buffer, at)[0]
                count -= 1
            beyond = at - len(buffer)
            if beyond <= 0:
                self._at = at
            else:
                self._at = len(buffer)
                self.skip(beyond, what)
