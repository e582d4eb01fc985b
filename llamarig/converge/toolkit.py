"""The parts of a CUDA toolkit on the controller: found where the spec says, each checked by its sha256."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from llamarig.catalog.toolkits import archive_list, components
from llamarig.converge.artifacts import Artifact
from llamarig.converge.store import origins
from llamarig.converge.store.download import Wish
from llamarig.converge.store.origins import locked
from llamarig.converge.store.pack import NVCC, lists_in, pack_tree
from llamarig.converge.store.shelf import Progress, Shelf, sha256_of, silent
from llamarig.errors import RigError
from llamarig.spec.controller_path import below

PLATFORM = "linux-x86_64"
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Part:
    """One file that the toolkit is put together from; ``kind`` as rig_toolkit takes it."""

    name: str
    kind: str
    artifact: Artifact


@dataclass(frozen=True)
class _Finder:
    """Where the parts of one toolkit are looked for."""

    toolkit: Mapping[str, Any]
    project: Path
    progress: Progress
    shelf: Shelf

    @property
    def location(self) -> str:
        return str(self.toolkit["location"])

    @property
    def folder(self) -> Path | None:
        """The directory on the controller that holds the parts, for that source."""
        return below(self.project, self.location) if self.toolkit["source"] == "directory" else None

    def wheels(self) -> Iterator[Part]:
        for requirement, pin in self.toolkit["wheels"].items():
            sha256 = locked(pin, requirement)
            path = self.shelf.get(sha256)
            if path is None and self.folder is not None:
                path = origins.from_path(self.shelf, origins.wheel_in(self.folder, requirement), sha256, None)
            elif path is None:
                path = origins.distribution(self.shelf, requirement, "wheel", sha256, self.progress)
            yield Part(requirement, "wheel", Artifact(sha256, path))

    def file(self, ref: str, sha256: str, label: str) -> Path:
        """A file that is pinned, by URL or path."""
        held = self.shelf.get(sha256)
        if held is not None:
            return held
        if origins.is_url(ref):
            return origins.from_url(self.shelf, Wish(ref, label), sha256, self.progress)
        return origins.from_path(self.shelf, below(self.project, ref), sha256, None)

    def listed(self, address: str, sha256: str) -> Iterator[Part]:
        """The archives that a pinned list names; each lies where the list's own place says, or beside it."""
        data = self.file(address, sha256, "list of archives").read_bytes()
        for name, relative, pin in named_archives(data, address):
            held = self.shelf.get(pin)
            if held is None and origins.is_url(address):
                held = self.file(urljoin(address, relative), pin, name)
            elif held is None:
                held = self.file(str(_beside(below(self.project, address), relative)), pin, name)
            yield Part(relative.rpartition("/")[2], "archive", Artifact(pin, held))

    def directory(self) -> Iterator[Part]:
        """A prepared tree, or the archives of a list that lies there."""
        folder, sha256 = self.folder or Path(), locked(self.toolkit["sha256"], "the toolkit's directory")
        if (folder / NVCC).is_file():
            path = self.shelf.get(sha256)
            if path is None:
                packed = pack_tree(folder, self.shelf.partial(f"tree {folder}"))
                path = self.shelf.put(packed, sha256, str(folder))
            yield Part("tree", "tree", Artifact(sha256, path))
            return
        lists = [path for path in lists_in(folder) if sha256_of(path) == sha256]
        if not lists:
            raise RigError(
                "the directory holds neither a toolkit nor the list of archives that the spec pins",
                str(folder),
                f"there is no {NVCC}, and no redistrib_*.json with sha256 {sha256}",
                "check cuda.location, or write `sha256: unlocked` and run `llamarig lock`",
            )
        yield from self.listed(str(lists[0]), sha256)

    def parts(self) -> Iterator[Part]:
        source, sha256 = self.toolkit["source"], self.toolkit["sha256"]
        if self.toolkit["wheels"]:
            yield from self.wheels()
        elif source == "directory":
            yield from self.directory()
        elif source == "archive" and (not self.location or self.location.endswith(".json")):
            address = self.location or archive_list(str(self.toolkit["version"]))
            if address is None:
                version = self.toolkit["version"]
                raise RigError(f"no list of archives is known for {version}", fix="give its address as cuda.location")
            yield from self.listed(address, locked(sha256, "the list of archives"))
        elif source in ("archive", "runfile"):
            pin = locked(sha256, f"the toolkit's {source}")
            path = self.file(self.location, pin, f"CUDA {source}")
            yield Part(self.location.rpartition("/")[2], source, Artifact(pin, path))
        else:
            raise RigError(f"a toolkit from {source} is not built", fix="take another cuda.source")


def named_archives(data: bytes, address: str) -> list[tuple[str, str, str]]:
    """Component, relative path and sha256 of the archives that a list names and the build needs.

    Raises :class:`RigError` when it is no such list, or lacks a part without which there is no toolkit.
    """
    wanted, required = components()
    try:
        listed = json.loads(data)
        there = {name: listed[name][PLATFORM] for name in wanted if PLATFORM in listed.get(name, {})}
        found = [(name, str(entry["relative_path"]), str(entry["sha256"])) for name, entry in there.items()]
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
        raise RigError("this is no list of redistributable archives", address, repr(error)[:200]) from error
    if missing := [name for name in required if name not in there]:
        raise RigError("the list of archives lacks a part of the toolkit", address, ", ".join(missing))
    for name, relative, pin in found:
        if not _SHA256.fullmatch(pin) or not _inside(relative):
            raise RigError("the list of archives names a file that it may not", address, f"{name}: {relative[:200]}")
    return found


def _inside(relative: str) -> bool:
    """Whether a path of the list stays below the list's own place."""
    return not relative.startswith("/") and "://" not in relative and ".." not in relative.split("/")


def _beside(listed: Path, relative: str) -> Path:
    """An archive below the list's directory as NVIDIA lays it out, or right beside the list."""
    whole = listed.parent / relative
    return whole if whole.is_file() else listed.parent / whole.name


def parts(
    toolkit: Mapping[str, Any], project: Path, progress: Progress = silent, shelf: Shelf | None = None
) -> list[Part]:
    """Every part of a wanted toolkit (``WantedToolkit`` as JSON), in the order in which they are put together.

    Raises :class:`RigError` when one cannot be had, or is not what the spec pins.
    """
    return list(_Finder(toolkit, project, progress, shelf or Shelf.default()).parts())
