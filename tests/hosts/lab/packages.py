"""What this machine needs for the lab: looked for first, installed with apt only when absent."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path


class LabError(Exception):
    """The lab cannot go on; the text says what is missing and what to do."""


def cache_dir() -> Path:
    """Where everything that outlives a run is kept, outside the checkout."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "llamarig"


def sha256_file(path: Path) -> str:
    """The sha256 of a file's content, in hex."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def ensure_commands(wanted: Mapping[str, str]) -> None:
    """Install the Debian package of every command that is not there.

    ``wanted`` maps a command to the package that carries it. Commands in /usr/sbin count
    although an unprivileged PATH would not find them.
    """
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    missing = sorted({package for command, package in wanted.items() if shutil.which(command, path=path) is None})
    if missing:
        install(missing)


def install(packages: list[str]) -> None:
    """Install Debian packages without a question and without starting their services.

    Raises :class:`LabError` with apt's own last lines when that fails.
    """
    if os.geteuid() != 0:
        raise LabError(f"these packages are missing: {' '.join(packages)}; run as root, or install them with apt")
    if shutil.which("apt-get") is None:
        raise LabError(f"these packages are missing and there is no apt-get here: {' '.join(packages)}")
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    for command in (["apt-get", "-q", "update"], ["apt-get", "-qy", "install", "--no-install-recommends", *packages]):
        done = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            tail = "\n".join(done.stdout.splitlines()[-15:])
            raise LabError(f"`{' '.join(command)}` ended with {done.returncode}:\n{tail}")
