"""The journal of a rollout: a file of JSON lines that is only ever appended to.

Each record is on the disk before what it announces is begun. A record carries a
number and a sum over itself and the sum before it, so that a changed, missing or
foreign line is told; a last line that was cut off while it was written is dropped.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llamarig.compare.text import hide_secrets, printable
from llamarig.errors import ExitCode, RigError, naming

Record = dict[str, Any]

FILE = "journal.jsonl"
MOST_CHARACTERS = 2000
"""Of any one text in a record; what hosts say may be endless."""
MOST_BYTES = 1 << 28
"""Of a whole journal; five hundred hosts take a few MB."""
FIX = (
    "find out who changed it; `llamarig status --all` says what the hosts run. Once the directory of "
    "this rollout is moved away a new one can begin, and it looks at each of them again"
)
_OTHER = "it is a directory, a pipe or a device"
_SUM = "sum"
_START = "llamarig rollout journal 1"
"""Stands for the sum before the first record."""


@dataclass(frozen=True)
class Contents:
    """What a journal holds: whole records, and how many bytes they take."""

    records: tuple[Record, ...]
    length: int
    """Bytes up to the end of the last whole record."""
    last_sum: str


def parse(data: bytes, where: str = "") -> Contents:
    """The records of a journal.

    A last line without its end is left out. Raises :class:`RigError` when anything else is
    not as it was written, with the number of the line.
    """
    records: list[Record] = []
    before, length = _START, 0
    for number, line in enumerate(data.split(b"\n")[:-1], start=1):
        record = _checked(line, len(records), before)
        if record is None:
            raise RigError(
                what="the journal is damaged",
                where=f"{where}:{number}" if where else f"line {number}",
                why="the line is not the one that was written there",
                fix=FIX,
            )
        records.append(record)
        before, length = str(record[_SUM]), length + len(line) + 1
    return Contents(tuple(records), length, before)


def _checked(line: bytes, number: int, before: str) -> Record | None:
    try:
        record = json.loads(line)
        if not isinstance(record, dict) or record.get("seq") != number or not isinstance(record.get("event"), str):
            return None
        return record if record.get(_SUM) == _sum(record, before) else None
    except (ValueError, RecursionError):
        return None


def _sum(record: Mapping[str, Any], before: str) -> str:
    said = {key: value for key, value in record.items() if key != _SUM}
    text = json.dumps(said, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(f"{before}\n{text}".encode()).hexdigest()[:32]


def clean(value: Any, most: int = MOST_CHARACTERS) -> Any:
    """``value`` with every text printable, short and without secrets; line breaks stay."""
    if isinstance(value, str):
        if value.isascii() and value.isprintable() and len(value) <= most:
            return hide_secrets(value)[:most]
        lines = value[: 4 * most].replace("\r\n", "\n").split("\n")
        return "\n".join(printable(line, most) if line else "" for line in lines)[:most]
    if isinstance(value, Mapping):
        return {str(clean(str(key), most)): clean(each, most) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [clean(each, most) for each in value]
    return value if isinstance(value, bool | int | float) or value is None else clean(str(value), most)


class Journal:
    """A journal that is open for writing. One process at a time writes it (:mod:`llamarig.fleet.rollout.lock`)."""

    def __init__(self, path: Path, descriptor: int, contents: Contents) -> None:
        self.path = path
        self.records = list(contents.records)
        self._descriptor = descriptor
        self._last = contents.last_sum

    @classmethod
    def create(cls, path: Path) -> Journal:
        """A new journal; its directory exists and is private. Raises :class:`FileExistsError`."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(path, flags, 0o600)
        sync_directory(path.parent)
        return cls(path, descriptor, Contents((), 0, _START))

    @classmethod
    def open(cls, path: Path) -> Journal:
        """A journal to go on with: a line that was cut off is taken away."""
        descriptor = _open(path, os.O_RDWR | os.O_APPEND)
        try:
            data = _bytes(descriptor, path)
            contents = parse(data, str(path))
            if contents.length != len(data):
                with naming(path):
                    os.ftruncate(descriptor, contents.length)
                    os.fsync(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        return cls(path, descriptor, contents)

    def append(self, *records: Mapping[str, Any]) -> None:
        """Write records and wait until they are on the disk."""
        self.append_all(records)

    def append_all(self, records: Iterable[Mapping[str, Any]]) -> None:
        """The same; all of them are one write."""
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        text = b""
        for given in records:
            record: Record = {"seq": len(self.records), "at": at, **clean(given)}
            record[_SUM] = self._last = _sum(record, self._last)
            self.records.append(record)
            text += json.dumps(record, separators=(",", ":")).encode() + b"\n"
        try:
            while text:
                text = text[os.write(self._descriptor, text) :]
            os.fsync(self._descriptor)
        except OSError as error:
            raise RigError(
                what="the rollout's journal cannot be written, so nothing further is begun",
                where=str(self.path),
                why=error.strerror or "",
                fix="make room there; llamarig rollout resume looks at the hosts first, and goes on",
                code=ExitCode.HOST_FAILED,
            ) from error

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def read(path: Path) -> Contents:
    """The contents of a journal that somebody else may be writing.

    Raises :class:`RigError` for what is no file of its own: a link is not followed, and a pipe is not waited for.
    """
    descriptor = _open(path, os.O_RDONLY)
    try:
        data = _bytes(descriptor, path)
    finally:
        os.close(descriptor)
    return parse(data, str(path))


def _open(path: Path, flags: int) -> int:
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            raise
        link = error.errno == errno.ELOOP
        raise _no_file(path, "it is a symbolic link" if link else _OTHER) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _no_file(path, _OTHER)
    return descriptor


def _bytes(descriptor: int, path: Path) -> bytes:
    with naming(path), os.fdopen(os.dup(descriptor), "rb") as stream:
        data = stream.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        why = f"it holds more than {MOST_BYTES >> 20} MiB, and no rollout writes that much"
        raise RigError("the journal is damaged", str(path), why, FIX)
    return data


def _no_file(path: Path, why: str) -> RigError:
    return RigError("the journal is no file of its own, and is not read", str(path), why, FIX)


def sync_directory(path: Path) -> None:
    """Put a directory's entries on the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with naming(path):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
