"""A private directory for one run of Ansible: mode 0700, in memory where possible, wiped at the end."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


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
def private_directory() -> Iterator[Path]:
    """A fresh directory that only this user can enter; gone afterwards, whatever happened."""
    path = Path(tempfile.mkdtemp(prefix="llamarig-", dir=_parent()))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def write_private(path: Path, text: str) -> Path:
    """Create ``path`` with mode 0600 and ``text``; it must not exist yet."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(text)
    return path
