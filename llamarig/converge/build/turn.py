"""One builds, others wait: a lock by name on the controller, held by a process and gone with it."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from llamarig.converge.store.shelf import cache_root

_EVERY_S = 1.0


def _open(name: str) -> int:
    folder = cache_root() / "building"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return os.open(folder / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _try(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def turn(name: str, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the name. ``waiting`` is called once when another process of this user has it."""
    descriptor = _open(name)
    try:
        if not _try(descriptor):
            waiting()
            while not _try(descriptor):
                time.sleep(_EVERY_S)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def if_free(name: str) -> Iterator[bool]:
    """Hold the name if nobody has it; says whether it does."""
    descriptor = _open(name)
    try:
        yield _try(descriptor)
    finally:
        os.close(descriptor)
