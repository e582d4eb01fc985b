"""What one host needs by content: its release, or source and patches and toolkit to build it, and its models."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from llamarig.converge import artifacts, toolkit
from llamarig.converge.mirror.place import Place
from llamarig.converge.store import git
from llamarig.converge.store.origins import locked
from llamarig.converge.store.releases import Releases
from llamarig.converge.store.shelf import BY_CONTENT, Progress, Shelf

Make = Callable[[Shelf], Path]
"""Has a file, on the shelf that it is given or elsewhere on the controller."""


def collect_content(place: Place, wanted: Mapping[str, Any], project: Path, progress: Progress) -> None:
    """Everything of one host's wanted state that the controller or the site's server hands over.

    Where the controller holds the finished release, that is taken, and neither source nor toolkit: nothing is built
    at the site. Raises :class:`~llamarig.errors.RigError`; what has been collected so far stays.
    """
    host, release = str(wanted["host"]), wanted["release"]
    if release["artifact"] is not None:
        _release(place, release, host)
    else:
        _source(place, release, project, host, progress)
        for patch in release["patches"]:
            name = f"patch {patch['name']}"
            place.content(locked(patch["sha256"], name), "patch", name, host, _patch(patch, project))
        if wanted["toolkit"] is not None:
            _toolkit(place, wanted["toolkit"], project, host, progress)
    for model in wanted["models"]:
        if model["origin"]["kind"] == "host-path":
            continue
        name = artifacts.label_of(model)
        sha256 = locked(model["sha256"], f"model {name}")
        place.content(sha256, "model", name, host, _model(model, project, progress))


def _patch(patch: Mapping[str, Any], project: Path) -> Make:
    return lambda shelf: artifacts.patch(patch, project, shelf).path


def _model(model: Mapping[str, Any], project: Path, progress: Progress) -> Make:
    return lambda shelf: artifacts.model(model, project, progress, shelf).path


def _ready(path: Path) -> Make:
    return lambda _shelf: path


def _release(place: Place, release: Mapping[str, Any], host: str) -> None:
    """The packed release, with the note that tells its id, in the form of the controller's own store."""
    name, ours = f"release {release['id']}", Releases.default()
    sha256 = str(release["artifact"]["sha256"])
    place.content(sha256, "release", name, host, lambda _shelf: ours.file(release))
    note = ours.note(release["id"])
    place.file(f"{note.parent.name}/{note.name}", "note", name, note.read_bytes(), host)


def _source(place: Place, release: Mapping[str, Any], project: Path, host: str, progress: Progress) -> None:
    origin = release["source"]
    name = f"engine source {origin['ref']}"

    def fetch(shelf: Shelf) -> Path:
        return artifacts.source(release, project, progress, shelf).path

    if origin["kind"] != "git":
        place.content(locked(origin.get("sha256"), name), "source", name, host, fetch)
        return
    # The commit names the content; a note says which archive was made of it.
    found = artifacts.source(release, project, progress)
    place.content(found.sha256, "source", f"{name} {release['commit']}", host, _ready(found.path))
    place.file(git.note_path(release["commit"]), "note", name, _json({"sha256": found.sha256}), host)


def _toolkit(place: Place, wanted: Mapping[str, Any], project: Path, host: str, progress: Progress) -> None:
    """The parts of the toolkit, and the list that pins them where there is one."""
    before = place.by_content()
    found = {
        part.artifact.sha256: (part.name, part.artifact.path)
        for part in toolkit.parts(wanted, project, progress, place.shelf)
    }
    pin = wanted["sha256"]
    held = place.shelf.get(pin) if isinstance(pin, str) and pin else None
    if held is not None:
        found[pin] = (f"CUDA {wanted['version']}", held)
    for sha256, (name, path) in found.items():
        if sha256 not in before:
            # It was put on the mirror's shelf right away, so that the next step finds it there.
            place.added.append(f"{BY_CONTENT}/{sha256}")
        place.content(sha256, "toolkit", name, host, _ready(path))


def _json(data: Any) -> bytes:
    return (json.dumps(data, indent=1) + "\n").encode()
