"""Build on another host of the project, over SSH."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llamarig.converge.build.place import Task
from llamarig.converge.build.play import Around, Machine, make
from llamarig.converge.connection import connection_variables, lend_password
from llamarig.converge.wanted import spec_of
from llamarig.errors import RigError

if TYPE_CHECKING:
    from llamarig.spec.host import HostSpec


def build_on_host(task: Task, around: Around) -> None:
    """Build on the task's builder, under that host's lock; it keeps the release, so that a later run finds it there.

    Raises :class:`RigError` when the builder cannot be reached, is no host of the project, or the build fails.
    """
    name = task.place.builder
    spec = _builder(name, around)
    if spec.os != task.spec.os:
        raise RigError(f"the builder {name} runs another system than the hosts it would build for", name)
    reach = connection_variables(spec, around.root, around.private)
    lend_password(reach, around.given.become_password_file)
    make(task, Machine(name, reach, {"kind": "builder", "host": name}), around)


def _builder(name: str, around: Around) -> HostSpec:
    loaded = around.known.get(name)
    if loaded is None:
        from llamarig.spec.load import load_project  # noqa: PLC0415 - the whole project, needed here only

        loaded = load_project(around.root, around.given.overlay).named(name)
    return spec_of(loaded)
