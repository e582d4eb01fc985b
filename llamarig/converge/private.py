"""A private directory for one run of Ansible: mode 0700, in memory where possible, wiped at the end."""

from __future__ import annotations

import os
import re
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from llamarig.errors import naming


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


def private_place(parent: str | None = None) -> Path:
    """A fresh directory with mode 0700 whose name tells whose it is; those of dead runs are swept first.

    Only SIGKILL or a loss of power leaves one behind.
    """
    place = Path(parent or tempfile.gettempdir())
    namespace = _pid_namespace()
    if namespace is None:
        return Path(tempfile.mkdtemp(prefix="llamarig-", dir=place))
    _sweep(place, namespace)
    return Path(tempfile.mkdtemp(prefix=f"llamarig-{namespace}-{os.getpid()}-", dir=place))


def _pid_namespace() -> str | None:
    """The number of this process's pid namespace: a pid says nothing outside of it; None when it is not known."""
    try:
        found = re.fullmatch(r"pid:\[(\d+)\]", os.readlink("/proc/self/ns/pid"))  # noqa: PTH115 - no path, a word
    except OSError:
        return None
    return found[1] if found is not None else None


def _sweep(place: Path, namespace: str) -> None:
    """Remove what this user's own dead runs left: directories, no links, of a pid that is gone."""
    ours = re.compile(rf"llamarig-{namespace}-(\d{{1,10}})-\w+")
    try:
        entries = [*os.scandir(place)]
    except OSError:
        return
    for entry in entries:
        match = ours.fullmatch(entry.name)
        try:
            if match is None or not entry.is_dir(follow_symlinks=False) or _lives(int(match[1])):
                continue
            if entry.stat(follow_symlinks=False).st_uid == os.getuid():
                shutil.rmtree(entry.path, ignore_errors=True)
        except OSError:
            continue


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


@contextmanager
def private_directory() -> Iterator[Path]:
    """A fresh directory that only this user can enter; gone afterwards, whatever happened."""
    path = private_place(_parent())
    try:
        with _ended_in_order():
            yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def write_private(path: Path, text: str) -> Path:
    """Create ``path`` with mode 0600 and ``text``; it must not exist yet."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with naming(path), os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(text)
    return path
