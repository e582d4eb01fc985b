"""A private directory for one run of Ansible: mode 0700, in memory where possible, wiped at the end."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType


def _parent() -> str | None:
    """The user's runtime directory (memory, not disk) when it is his alone, else the default."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime:
        try:
            status = Path(runtime).stat()
        except OSError:
            return None
        if status.st_uid == os.getuid() and not status.st_mode & 0o077:
            return runtime
    return None


@contextmanager
def _ended_in_order() -> Iterator[None]:
    """Let SIGTERM and SIGHUP unwind the program as Ctrl-C does, so that nothing private is left behind."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def private_directory() -> Iterator[Path]:
    """A fresh directory that only this user can enter; gone afterwards, whatever happened."""
    path = Path(tempfile.mkdtemp(prefix="llamarig-", dir=_parent()))
    try:
        with _ended_in_order():
            yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def write_private(path: Path, text: str) -> Path:
    """Create ``path`` with mode 0600 and ``text``; it must not exist yet."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(text)
    return path
