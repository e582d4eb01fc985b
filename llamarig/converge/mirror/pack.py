"""The packages of a mirror as one file, for a host that reaches no server of its site."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

from llamarig.converge.artifacts import Artifact
from llamarig.converge.mirror.manifest import Manifest
from llamarig.converge.store.shelf import Shelf, sha256_of
from llamarig.errors import RigError, naming


def packed_packages(mirror: Path, system: str, shelf: Shelf) -> Artifact:
    """A tar of the flat repository of a system, the same bytes for the same files, so that a copy can go on.

    Nothing in it is trusted: apt checks the index by the key in its list, and each package by the index. Raises
    :class:`RigError` when the mirror has no packages of the system, or one of its files is gone.
    """
    manifest = Manifest.load(mirror)
    if system not in manifest.debian:
        raise RigError("the mirror holds no packages of this system", f"{mirror}: {system}")
    folder = f"debian/{system}/"
    temporary = shelf.partial(f"packages {mirror} {system} {os.getpid()}")
    try:
        with naming(temporary), tarfile.open(temporary, "w", format=tarfile.PAX_FORMAT) as tar:
            for path in sorted(path for path in manifest.files if path.startswith(folder)):
                info = tarfile.TarInfo(path.removeprefix(folder))
                info.size, info.mode = (mirror / path).stat().st_size, 0o644
                with (mirror / path).open("rb") as stream:
                    tar.addfile(info, stream)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        if error.filename == str(temporary):
            raise
        raise RigError(
            what="a package of the mirror cannot be read",
            where=str(error.filename or mirror),
            why=error.strerror or "",
            fix="copy the mirror again; `sha256sum --check SHA256SUMS` in it says what is wrong",
        ) from error
    sha256 = sha256_of(temporary)
    return Artifact(sha256, shelf.put(temporary, sha256, f"packages of {system}"))
