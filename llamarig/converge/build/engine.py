"""The container engine of the controller, through its own SDK; its words reach the user as they are."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from llamarig.converge.store.shelf import cache_root
from llamarig.errors import ExitCode, RigError

if TYPE_CHECKING:
    from docker import DockerClient

LABEL = "llamarig.build"
"""Containers, images and the volume of builds carry it; its value is :func:`owner`."""
LABEL_TURN = "llamarig.build.turn"
"""The name of the lock that whoever uses the container holds; whoever gets that lock may take it away."""
_PATIENCE_S = 600


def owner() -> str:
    """Names this user's builds: two users of one engine share no compiler cache, image or container."""
    return hashlib.sha256(f"{os.getuid()}\0{cache_root()}".encode()).hexdigest()[:12]


@contextmanager
def engine() -> Iterator[DockerClient]:
    """A client to the engine that DOCKER_HOST names, or the machine's own.

    Raises :class:`RigError` when the SDK is missing, no engine answers, or the engine refuses something.
    """
    try:
        import docker  # noqa: PLC0415 - an extra that only builds in containers need
        from docker.errors import DockerException  # noqa: PLC0415 - the SDK is an extra
    except ImportError as error:
        raise RigError(
            what="a build in a container needs the docker SDK for Python, which is not installed",
            why=str(error),
            fix="pip install 'llamarig[container]', or build on a builder host",
        ) from error
    try:
        client = docker.from_env(timeout=_PATIENCE_S)
    except DockerException as error:
        raise _silent(error) from error
    try:
        client.ping()
    except (DockerException, OSError) as error:
        client.close()
        raise _silent(error) from error
    try:
        yield client
    except DockerException as error:
        raise RigError(
            what="the container engine refused a step of the build", why=str(error), code=ExitCode.HOST_FAILED
        ) from error
    finally:
        client.close()


def _silent(error: Exception) -> RigError:
    return RigError(
        what="no container engine answers on this controller",
        where=os.environ.get("DOCKER_HOST", ""),
        why=str(error)[:1000],
        fix="start docker, and let this user talk to it; or build on a builder host",
        code=ExitCode.HOST_FAILED,
    )
