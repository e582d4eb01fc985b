"""Make each release that hosts want from elsewhere, once, and keep it on the controller."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from llamarig.converge.build.builder import build_on_host
from llamarig.converge.build.container import build_in_container
from llamarig.converge.build.place import Task, tasks
from llamarig.converge.build.play import Around, Given
from llamarig.converge.build.turn import turn
from llamarig.converge.events import Sink
from llamarig.converge.mirror.adopt import held_release
from llamarig.errors import RigError, RigErrors

if TYPE_CHECKING:
    from llamarig.spec.load import LoadedHost

_NOTHING = Given()


def ensure_releases(root: Path, hosts: Sequence[LoadedHost], private: Path, sink: Sink) -> None:
    """Have the release of every host that does not build its own on the controller.

    Raises :class:`RigErrors` with one error a host that cannot have its release; the others' are made.
    """
    errors = make_releases(root, hosts, private, sink)
    if errors:
        raise RigErrors(list(errors.values()))


def make_releases(
    root: Path, hosts: Sequence[LoadedHost], private: Path, sink: Sink, given: Given = _NOTHING
) -> dict[str, RigError]:
    """The same; returns by host why its release cannot be had, and is empty when all is well."""
    known = {loaded.host: loaded for loaded in hosts}
    errors: dict[str, RigError] = {}
    for task in tasks(hosts):
        own = Path(tempfile.mkdtemp(prefix="b", dir=private))
        try:
            _make(task, Around(root, own, sink, known, given))
        except RigError as error:
            errors |= {host: _for_host(error, host, task) for host in task.hosts}
    return errors


def _make(task: Task, around: Around) -> None:
    def waiting() -> None:
        label = f"waits for another run that builds {task.release}"
        for host in task.hosts:
            around.sink({"event": "start", "host": host, "task": label, "role": ""})

    with turn(task.release, waiting):
        if held_release(task.spec, around.root) is not None:
            return
        if task.place.builder:
            build_on_host(task, around)
        else:
            build_in_container(task, around)


def _for_host(error: RigError, host: str, task: Task) -> RigError:
    what = f"its release {task.release} could not be made {task.place.words}: {error.what}"
    return RigError(what, host, error.why, error.fix, error.code)
