"""Build in a container of the controller: made for one build, without a network, and gone afterwards."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from llamarig.converge.build import image
from llamarig.converge.build.engine import LABEL, LABEL_TURN, engine, owner
from llamarig.converge.build.place import Task
from llamarig.converge.build.play import Around, Machine, make
from llamarig.converge.build.turn import if_free, turn
from llamarig.errors import ExitCode, RigError
from llamarig.render.build import packages
from llamarig.render.toolkit import toolkit
from llamarig.render.wanted import CCACHE

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container
    from docker.models.images import Image

RIGHTS = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETPCAP", "SETUID")
"""What root in the container may: apt and the roles give files to users and start programs as them. Nothing of it
reaches what is compiled, which runs as a user without any right."""
_WAIT = "n=0; while [ $n -lt 1440 ]; do sleep 60; n=$((n+1)); done"
"""Keeps the container for a day at most, should nobody ever come back for it, and buries what ended in it."""
_PROCESSES = 4096
_PYTHON = (
    "command -v python3 >/dev/null || { apt-get -q update && "
    "DEBIAN_FRONTEND=noninteractive apt-get -qy install --no-install-recommends python3; } 2>&1"
)


def build_in_container(task: Task, around: Around) -> None:
    """Build the task's release in a container of its image.

    A container that a killed run of this user left for the same release is joined: what it compiles goes on there.
    Raises :class:`RigError` when the image is not there or of another system, or the build fails.
    """
    with engine() as client:
        _sweep(client, task.release)
        base = image.base_image(client, task.place.image)
        # The system is part of it: an image is looked at before it is used for hosts of another one.
        content = {"system": _system(task), "packages": packages(task.spec)}
        prepared = _prepared(client, _Layer(base, "packages", content), task, around)
        used = toolkit(task.spec)
        if used is not None:
            prepared = _prepared(client, _Layer(prepared, "toolkit", used.id), task, around)
        with _container(client, prepared, task) as container:
            place = image.provenance(base, task.place.image)
            make(task, Machine(_name(task), _reach(container), place), around)


def _name(task: Task) -> str:
    return f"container-{task.release}"


def _system(task: Task) -> str:
    return f"{task.spec.os.distribution} {task.spec.os.release}"


def _reach(container: Container) -> dict[str, Any]:
    return {
        "ansible_connection": "rig_container",
        "ansible_host": str(container.id),
        "ansible_python_interpreter": "/usr/bin/python3",
    }


@dataclass(frozen=True)
class _Layer:
    """What an image is made with, and of which one."""

    base: Image
    until: Literal["packages", "toolkit"]
    content: object


def _prepared(client: DockerClient, layer: _Layer, task: Task, around: Around) -> Image:
    """The image of a layer, made once: packages and users with a network, a toolkit without."""
    tag = image.prepared_tag(layer.base, layer.content)
    lock = tag.replace(":", "-")

    def waiting() -> None:
        around.sink({"event": "start", "host": _name(task), "task": "waits for the image of the build", "role": ""})

    with turn(lock, waiting):
        found = image.find(client, tag)
        if found is not None:
            return found
        network = "bridge" if layer.until == "packages" else "none"
        with _running(client, layer.base, lock, {"network_mode": network}) as container:
            said = f"prepares an image for builds: {layer.until}"
            around.sink({"event": "start", "host": _name(task), "task": said, "role": ""})
            if layer.until == "packages":
                image.check_system(container, _system(task), task.place.image)
                _have_python(container)
            own = around.private / layer.until
            own.mkdir(mode=0o700)
            inside = Around(around.root, own, around.sink, around.known)
            machine = Machine(_name(task), _reach(container), {"kind": "container"})
            make(task, machine, inside, layer.until)
            image.keep(container, tag, layer.base)
    made = image.find(client, tag)
    if made is None:
        raise RigError(f"the engine does not have the image {tag} that it was told to keep", code=ExitCode.HOST_FAILED)
    return made


def _have_python(container: Container) -> None:
    """Ansible's modules need it, and a bare image may lack it."""
    code, said = container.exec_run(["sh", "-c", _PYTHON])
    if code != 0:
        raise RigError(
            what="python3 cannot be installed in the image",
            why=(said if isinstance(said, bytes) else b"".join(said)).decode(errors="replace").strip()[-2000:],
            fix="the image needs apt with sources that this controller reaches, or python3 in it",
            code=ExitCode.HOST_FAILED,
        )


@contextmanager
def _container(client: DockerClient, prepared: Image, task: Task) -> Iterator[Container]:
    """A container for one build, which has had no network at any time; one that was left for the same is joined."""
    for left in _ours(client):
        if left.labels.get(LABEL_TURN) != task.release:
            continue
        if left.status == "running" and left.attrs["Image"] == prepared.id:
            with _gone_afterwards(left):
                yield left
            return
        _remove(left)
    cache = f"llamarig-ccache-{owner()}"
    client.volumes.create(cache, labels={LABEL: owner()})
    mounts = {cache: {"bind": CCACHE, "mode": "rw"}}
    with _running(client, prepared, task.release, {"network_mode": "none", "volumes": mounts}) as container:
        yield container


@contextmanager
def _running(client: DockerClient, of: Image, lock: str, more: dict[str, Any]) -> Iterator[Container]:
    container = client.containers.create(
        str(of.id),
        ["-c", _WAIT],
        entrypoint=["/bin/sh"],
        user="0:0",
        working_dir="/",
        labels={LABEL: owner(), LABEL_TURN: lock},
        cap_drop=["ALL"],
        cap_add=list(RIGHTS),
        security_opt=["no-new-privileges"],
        pids_limit=_PROCESSES,
        auto_remove=True,
        **more,
    )
    with _gone_afterwards(container):
        container.start()
        container.reload()
        yield container


@contextmanager
def _gone_afterwards(container: Container) -> Iterator[None]:
    try:
        yield
    finally:
        _remove(container)


def _remove(container: Container) -> None:
    from docker.errors import APIError  # noqa: PLC0415 - the SDK is an extra

    with contextlib.suppress(APIError):  # it is gone, or on its way
        container.remove(force=True, v=True)


def _ours(client: DockerClient) -> list[Container]:
    found: list[Container] = client.containers.list(
        all=True, filters={"label": f"{LABEL}={owner()}"}, ignore_removed=True
    )
    return found


def _sweep(client: DockerClient, release: str) -> None:
    """Take away what killed runs left, except for this release: nobody holds the lock that its user held."""
    for container in _ours(client):
        name = str(container.labels.get(LABEL_TURN, ""))
        if name == release:
            continue
        with if_free(name) as free:
            if free:
                _remove(container)
