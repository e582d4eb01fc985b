"""The bare Debian 13 image: made from the machine's own apt mirror, kept as a tar, verified on use."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import docker
from docker.errors import APIError, ImageNotFound

from lab.apt_sources import FORMER_SUITE, SUITE, AptSource, codename, for_suite, machine_sources, proxies
from lab.packages import LabError, cache_dir, ensure_commands, sha256_file

REPOSITORY = "llamarig-lab"
INCLUDE = (
    "systemd",
    "systemd-sysv",
    "dbus",
    "python3",
    "openssh-server",
    "iproute2",
    "ca-certificates",
)
"""What a freshly installed server has as well; nothing that llamarig should have to install."""
_RECIPE = 1
_PUBLIC_IMAGE = "debian"
_RELEASES = {SUITE: "13", FORMER_SUITE: "12"}


@dataclass(frozen=True)
class Recipe:
    """All that goes into the image; the digest of it names the image and its tar."""

    sources: tuple[AptSource, ...]
    proxies: str
    suite: str = SUITE
    """Its name stands in every source, and so in the key."""

    @property
    def key(self) -> str:
        """16 hex digits over everything that shapes the content."""
        lines = [source.line() for source in self.sources]
        text = json.dumps([_RECIPE, lines, self.proxies, INCLUDE])
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def tag(self) -> str:
        return f"{REPOSITORY}:{self.key}"


def machine_recipe(suite: str = SUITE) -> Recipe:
    """The recipe that fits this machine's apt configuration."""
    distribution, name = codename()
    sources = for_suite(machine_sources(), name, suite) if distribution == "debian" else []
    return Recipe(tuple(sources), proxies(), suite)


def debian_12(client: docker.DockerClient) -> str:
    """The tag of a bare Debian 12 image."""
    return _ensure(client, machine_recipe(FORMER_SUITE))


def ensure_image(client: docker.DockerClient) -> str:
    """The tag of a bare Debian 13 image in the engine; from the engine, the cache, or made now."""
    return _ensure(client, machine_recipe())


def _ensure(client: docker.DockerClient, recipe: Recipe) -> str:
    if _has(client, recipe.tag):
        return recipe.tag
    archive = cache_dir() / "lab" / f"{recipe.key}.tar"
    if not holds(archive):
        if not recipe.sources:
            return _from_public_image(client, recipe)
        _bootstrap(recipe, archive)
    client.api.import_image_from_file(
        str(archive), repository=REPOSITORY, tag=recipe.key, changes=[f"LABEL {REPOSITORY}={recipe.key}"]
    )
    return recipe.tag


def _has(client: docker.DockerClient, tag: str) -> bool:
    try:
        client.images.get(tag)
    except ImageNotFound:
        return False
    return True


def holds(path: Path) -> bool:
    """Whether a kept file is there and is what was written."""
    kept = path.with_name(f"{path.name}.sha256")
    if not path.is_file() or not kept.is_file():
        return False
    return sha256_file(path) == kept.read_text().strip()


def keep(part: Path, path: Path) -> None:
    """Move a finished file to its place in the cache, with its hash beside it."""
    path.with_name(f"{path.name}.sha256").write_text(sha256_file(part) + "\n")
    part.rename(path)


def _bootstrap(recipe: Recipe, archive: Path) -> None:
    archive.parent.mkdir(parents=True, exist_ok=True)
    part = archive.with_name(f"{archive.name}.{os.getpid()}.part")
    try:
        mmdebstrap(recipe, part, "tar")
        keep(part, archive)
    finally:
        part.unlink(missing_ok=True)


def mmdebstrap(
    recipe: Recipe, target: Path, form: str, *, extra: tuple[str, ...] = (), options: tuple[str, ...] = ()
) -> None:
    """Make a tree of the recipe's suite at ``target``, as a tar or a directory, from the recipe's mirrors."""
    ensure_commands({"mmdebstrap": "mmdebstrap"})
    keyrings = sorted({source.keyring for source in recipe.sources if source.keyring})
    command = ["mmdebstrap", "--quiet", "--variant=minbase", f"--format={form}"]
    command += [f"--include={','.join((*INCLUDE, *extra))}"]
    command += [f"--keyring={path}" for path in keyrings]
    command += [f"--customize-hook=upload {path} /etc/apt/trusted.gpg.d/{Path(path).name}" for path in keyrings]
    command += [f"--aptopt={line.rstrip(';')}" for line in recipe.proxies.splitlines()]
    command += [*options, recipe.suite, str(target), *(source.line() for source in recipe.sources)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        tail = "\n".join(done.stderr.splitlines()[-15:])
        raise LabError(f"mmdebstrap ended with {done.returncode}:\n{tail}")


def _from_public_image(client: docker.DockerClient, recipe: Recipe) -> str:
    """On a machine that is not Debian: the public image, with what ``INCLUDE`` adds to it."""
    public = f"{_PUBLIC_IMAGE}:{_RELEASES[recipe.suite]}"
    if not _has(client, public):
        try:
            client.images.pull(_PUBLIC_IMAGE, _RELEASES[recipe.suite])
        except APIError as error:
            raise LabError(
                f"this machine's apt is not Debian's, and {public} could not be pulled: {error.explanation}"
            ) from error
    script = f"apt-get -q update && apt-get -qy install --no-install-recommends {' '.join(INCLUDE)}"
    builder = client.containers.run(public, ["sh", "-c", script], detach=True, labels={REPOSITORY: "builder"})
    try:
        if builder.wait()["StatusCode"] != 0:
            raise LabError(f"apt in {public} failed:\n{builder.logs(tail=15).decode(errors='replace')}")
        builder.commit(repository=REPOSITORY, tag=recipe.key)
    finally:
        builder.remove(force=True)
    return recipe.tag
