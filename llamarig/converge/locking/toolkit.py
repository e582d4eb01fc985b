"""Locking the CUDA toolkit: the hash of a runfile, of an archive, or of the list that pins all of its archives."""

from __future__ import annotations

import json

from llamarig.catalog.toolkits import archive_list, release_of
from llamarig.converge.locking.files import Finder
from llamarig.converge.locking.result import digest_of
from llamarig.errors import RigError
from llamarig.spec.hardware import Cuda

LIST_BYTES = 4 << 20
"""A list of archives is shorter than this."""


def toolkit_sha256(finder: Finder, cuda: Cuda) -> str:
    """What ``cuda.sha256`` pins, looked up at ``cuda.location``, else in NVIDIA's lists of archives.

    Raises :class:`RigError` when no address is known, or the list is that of another toolkit.
    """
    if cuda.location is not None and not cuda.location.endswith(".json"):
        return finder.archive_sha256(cuda.location)
    address = cuda.location or (archive_list(cuda.version) if cuda.source == "archive" else None)
    if address is None:
        raise RigError(
            "the toolkit's hash cannot be looked up without its address",
            why=f"source {cuda.source}, version {cuda.version}",
            fix="give the file's URL or path as cuda.location",
        )
    data = finder.small_file(address, LIST_BYTES)
    _is_list_of(cuda.version, data, address)
    return digest_of(data)


def _is_list_of(version: str, data: bytes, address: str) -> None:
    """The list is one of archives, and of this toolkit: by its own label, or by the version of its nvcc."""
    try:
        listed = json.loads(data)
        label, nvcc = str(listed["release_label"]), str(listed["cuda_nvcc"]["version"])
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        raise RigError("this is no list of redistributable archives", address, repr(error)[:200]) from error
    if version != nvcc and release_of(version) != label:
        raise RigError(
            "the list of archives is that of another toolkit",
            address,
            f"release {label[:40]} with nvcc {nvcc[:40]}, and the spec names {version}",
            "correct cuda.version, or give the right list as cuda.location",
        )
