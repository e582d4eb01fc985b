"""The images of a build: a bare system that the spec names, and one made of it with the build's packages."""

from __future__ import annotations

import hashlib
import io
import json
import re
import tarfile
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from llamarig.converge.build.engine import LABEL, owner
from llamarig.errors import ExitCode, RigError

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container
    from docker.models.images import Image

REPOSITORY = "llamarig-build"
_FORM = 1
"""Changes with what is done to a prepared image beside its packages."""
_OS_RELEASE = ("/usr/lib/os-release", "/etc/os-release")
_MOST = 64 << 10


def base_image(client: DockerClient, reference: str) -> Image:
    """The image that the spec names; pulled when the engine does not have it.

    Raises :class:`RigError` with the engine's words when it cannot be had.
    """
    from docker.errors import APIError, ImageNotFound, NullResource  # noqa: PLC0415 - the SDK is an extra

    try:
        return client.images.get(reference)
    except (ImageNotFound, NullResource):
        pass
    name, digest, tag = reference, "", ""
    if "@" in reference:
        name, _, digest = reference.partition("@")
    elif ":" in reference.rpartition("/")[2]:
        name, _, tag = reference.rpartition(":")
    try:
        return client.images.pull(name, tag=digest or tag or "latest")
    except APIError as error:
        raise RigError(
            what=f"the image {reference} is not on this controller and cannot be pulled",
            why=str(error.explanation or error)[:1000],
            fix="check its name, or load it into the engine (docker load, docker import)",
            code=ExitCode.HOST_FAILED,
        ) from error


def prepared_tag(base: Image, content: object) -> str:
    """The tag of the image that is made of ``base`` with some content: a set of packages, a toolkit by its id."""
    text = json.dumps([_FORM, base.id, content, owner()], sort_keys=True)
    return f"{REPOSITORY}:{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def find(client: DockerClient, tag: str) -> Image | None:
    """The image of that tag; None when there is none."""
    from docker.errors import ImageNotFound  # noqa: PLC0415 - the SDK is an extra

    try:
        return client.images.get(tag)
    except ImageNotFound:
        return None


def keep(container: Container, tag: str, base: Image) -> None:
    """Make an image of what a container has become."""
    name, _, word = tag.rpartition(":")
    labels = {LABEL: owner(), f"{LABEL}.base": str(base.id)}
    changes = [f"LABEL {key}={value}" for key, value in labels.items()]
    container.commit(repository=name, tag=word, changes=changes)


def check_system(container: Container, wanted: str, reference: str) -> None:
    """Refuse an image of another system than the hosts run (``debian 13``): what is built in it may not start there."""
    said = os_release(lambda path: _read(container, path))
    found = f"{said.get('ID', 'an unknown system')} {said.get('VERSION_ID', '')}".strip()
    if found != wanted:
        raise RigError(
            what=f"the image {reference} is {found}, and its hosts run {wanted}",
            fix="name an image of that system: another C library or compiler makes other binaries",
        )


def os_release(read: Callable[[str], str | None]) -> dict[str, str]:
    """What the system says of itself; empty when it says nothing. ``read`` gives a file's text or None."""
    text = next((text for path in _OS_RELEASE if (text := read(path))), "")
    pairs = re.findall(r"""^([A-Z_]+)=["']?([\w.+-]{1,64})["']?\s*$""", text, re.MULTILINE)
    return dict(pairs)


def _read(container: Container, path: str) -> str | None:
    from docker.errors import NotFound  # noqa: PLC0415 - the SDK is an extra

    try:
        stream, _ = container.get_archive(path)
    except NotFound:
        return None
    content = b""
    for block in stream:
        content += block
        if len(content) > _MOST:
            return None
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        member = tar.next()
        file = tar.extractfile(member) if member is not None and member.isreg() else None
        return file.read().decode(errors="replace") if file is not None else None


def provenance(base: Image, reference: str) -> dict[str, Any]:
    """What provenance.json says of where it was built."""
    digests = sorted(str(each) for each in base.attrs.get("RepoDigests") or [])
    return {"kind": "container", "image": reference, "image-id": str(base.id), "digests": digests}
