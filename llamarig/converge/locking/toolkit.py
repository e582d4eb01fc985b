"""Locking the CUDA toolkit: the hash of a runfile, of an archive, or of the list that pins all of its archives."""

from __future__ import annotations

import json

from llamarig.catalog.toolkits import archive_list, release_of
from llamarig.converge.locking.files import Finder
from llamarig.converge.locking.result import digest_of
from llamarig.converge.store.pack import NVCC, lists_in, pack_tree
from llamarig.converge.store.shelf import sha256_of
from llamarig.errors import RigError
from llamarig.spec.controller_path import below
from llamarig.spec.hardware import Cuda

LIST_BYTES = 4 << 20
"""A list of archives is shorter than this."""


def toolkit_sha256(finder: Finder, cuda: Cuda) -> str:
    """What ``cuda.sha256`` pins, looked up at ``cuda.location``, else in NVIDIA's lists of archives.

    Raises :class:`RigError` when no address is known, or the list is that of another toolkit.
    """
    if cuda.source == "directory":
        return _in_directory(finder, cuda)
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


def _in_directory(finder: Finder, cuda: Cuda) -> str:
    """The pin of a prepared tree, or of the one list of archives in the directory."""
    folder = below(finder.project, str(cuda.location))
    if (folder / NVCC).is_file():
        packed = pack_tree(folder, finder.shelf.partial(f"tree {folder}"))
        found = sha256_of(packed)
        packed.unlink()
        return found
    lists = lists_in(folder)
    if len(lists) > 1:
        raise RigError("the directory has more than one list of archives", str(folder), fix="leave the right one in it")
    if not lists:
        raise RigError(
            "the directory holds neither a toolkit nor a list of archives",
            str(folder),
            fix=f"it must hold {NVCC}, or a redistrib_<release>.json and its archives; wheels are named in cuda.wheels",
        )
    data = finder.small_file(str(lists[0]), LIST_BYTES)
    _is_list_of(cuda.version, data, str(lists[0]))
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
