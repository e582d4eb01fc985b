"""One at a time works on a project's fleet: a lock that the kernel gives back when its holder dies."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from llamarig.converge.controller import controller_facts
from llamarig.errors import RigError
from llamarig.fleet.rollout.places import DIRECTORY, home

_FILE = "lock"
_PATIENCE_S = 2.0
"""Whoever only asks who holds it has it for a moment."""
_MOST_BYTES = 4096


@contextlib.contextmanager
def fleet_lock(root: Path, verb: str, rollout: str | None = None) -> Iterator[None]:
    """Hold the project's fleet; ``rollout`` is the id of the one that is worked on, None for the newest.

    Raises :class:`RigError` naming the holder when a rollout runs. Nothing is left behind when this process is killed.
    """
    with _held(root, {"verb": verb, "rollout": rollout}):
        yield


@contextlib.contextmanager
def whole_fleet(root: Path, command: str) -> Iterator[None]:
    """Hold the project's fleet for a verb that changes all hosts, ``apply --all`` say; no rollout begins meanwhile.

    Raises :class:`RigError` naming the holder when somebody else holds it.
    """
    with _held(root, {"command": command}):
        yield


@contextlib.contextmanager
def _held(root: Path, what: dict[str, str | None]) -> Iterator[None]:
    descriptor = os.open(home(root) / _FILE, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        if not _take(descriptor):
            raise busy_error(root, _read(descriptor))
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        said = json.dumps(controller_facts() | what | {"since": since}).encode()
        try:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, said, 0)
        except OSError as error:
            where = str(home(root) / _FILE)
            raise RigError("nothing can be written where rollouts are kept", where, error.strerror or "") from error
        yield
    finally:
        os.close(descriptor)


def _take(descriptor: int) -> bool:
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        else:
            return True


def holder(root: Path) -> dict[str, Any] | None:
    """Who holds the fleet now; None when nobody does.

    ``who`` ``from`` ``pid`` ``since``, and the ``verb`` of a rollout or another ``command``.
    """
    try:
        descriptor = os.open(root / DIRECTORY / _FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read(descriptor)
    else:
        return None
    finally:
        os.close(descriptor)


def _read(descriptor: int) -> dict[str, Any]:
    try:
        said = json.loads(os.pread(descriptor, _MOST_BYTES, 0))
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def busy_error(root: Path, who: dict[str, Any]) -> RigError:
    """What somebody is told who comes second."""
    command = who.get("command")
    by = "of {} on {} (process {}), since {}".format(*(who.get(key, "?") for key in ("who", "from", "pid", "since")))
    if command:
        what = "the whole fleet of this project is being worked on"
        return RigError(what, str(root), f"`{command}` {by}", fix="wait until it has ended")
    return RigError(
        what="a rollout of this project is running",
        where=str(root),
        why=f"`rollout {who.get('verb', '?')}` {by}",
        fix="see `llamarig rollout status`; wait until it is done, or ask it to stop: llamarig rollout pause",
    )


def refuse_while_rolling(root: Path) -> None:
    """Raises :class:`RigError` while somebody holds the fleet."""
    who = holder(root)
    if who is not None:
        raise busy_error(root, who)
