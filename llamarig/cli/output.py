"""Standard output and standard error that name themselves when they cannot be written: a full disk, a pipe that ended.

The system's error of a write names no file, so that of a report could not be told from that of any other file.
"""

from __future__ import annotations

import io
import os
import sys
from typing import Any, TextIO

NAMES = {1: "standard output", 2: "standard error"}


class OutputError(OSError):
    """What was printed could not be written; ``descriptor`` says where, ``filename`` in words."""

    def __init__(self, error: OSError, descriptor: int) -> None:
        super().__init__(error.errno, error.strerror, NAMES[descriptor])
        self.descriptor = descriptor


class _Raw(io.FileIO):
    """A descriptor of this process whose errors are :class:`OutputError`."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "wb", closefd=False)

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise OutputError(error, self.fileno()) from error


def name_streams() -> None:
    """Put named streams in the place of ``sys.stdout`` and ``sys.stderr``; those that lead elsewhere stay."""
    sys.stdout, sys.stderr = _named(sys.stdout), _named(sys.stderr)


def _named(stream: TextIO) -> TextIO:
    buffer = getattr(stream, "buffer", None)
    raw = getattr(buffer, "raw", buffer)  # with PYTHONUNBUFFERED there is nothing between
    if not (isinstance(stream, io.TextIOWrapper) and isinstance(raw, io.FileIO) and raw.fileno() in NAMES):
        return stream
    stream.flush()
    ours = _Raw(raw.fileno())
    return io.TextIOWrapper(
        ours if raw is buffer else io.BufferedWriter(ours),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def give_up(error: OutputError) -> None:
    """Drop what is still held back for a stream: it would fail once more at the end of the process."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), error.descriptor)
