"""Finds the header of a model that a spec names, without any network."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from llamarig.errors import RigError
from llamarig.gguf.header import Header
from llamarig.gguf.reader import read_header
from llamarig.gguf.shards import merge
from llamarig.gguf.sidecar import load_sidecar, write_sidecar
from llamarig.spec.controller_path import below
from llamarig.spec.models import Model, ModelFile

UNLOCKED = "unlocked"


def default_cache() -> Path:
    """llamarig's directory below the user's cache directory."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "llamarig"


def find_header(model: ModelFile, project_root: Path, cache: Path | None = None) -> Header | None:
    """The header of ``model``: from its sidecar, or from its file on this machine; None when neither is here.

    Looked at in this order: ``headers/<sha256>.json`` in the project, the same in ``cache``
    (llamarig's own directory; :func:`default_cache` when not given), the file at
    ``controller-path``, ``artifacts/<sha256>`` in ``cache``. A file counts only when its size and sha256 are
    the spec's, where those are locked; what was read of it is stored in the cache.
    Raises :class:`RigError` when a sidecar or file is there and wrong.
    """
    if isinstance(model, Model) and model.header == "none":
        return None
    cache = default_cache() if cache is None else cache
    pinned = model.header if isinstance(model, Model) else None
    if model.sha256 != UNLOCKED:
        for root, digest in ((project_root, pinned), (cache, None)):
            sidecar = root / "headers" / f"{model.sha256}.json"
            if sidecar.is_file():
                return load_sidecar(sidecar, model_sha256=model.sha256, sidecar_sha256=digest)
    return _from_files(model, project_root, cache)


def _from_files(model: ModelFile, project_root: Path, cache: Path) -> Header | None:
    parts = [model, *(model.shards if isinstance(model, Model) else [])]
    headers: list[Header] = []
    for part in parts:
        path = _local_file(part, project_root, cache)
        if path is None:
            return None
        _verify(part, path)
        header = read_header(path)
        header.require_size(path.stat().st_size, str(path))
        headers.append(header)
    found = headers[0] if len(headers) == 1 else merge(headers)
    found.require_all_shards(str(_local_file(model, project_root, cache)))
    if all(part.sha256 != UNLOCKED for part in parts):
        write_sidecar(found, model.sha256, cache / "headers")
    return found


def _local_file(part: ModelFile, project_root: Path, cache: Path) -> Path | None:
    places = []
    if part.controller_path is not None:
        places.append(below(project_root, part.controller_path))
    if part.sha256 != UNLOCKED:
        places.append(cache / "artifacts" / part.sha256)
    return next((place for place in places if place.is_file()), None)


def _verify(part: ModelFile, path: Path) -> None:
    """Content is used only after its hash matches."""
    size = path.stat().st_size
    if part.size not in (UNLOCKED, size):
        raise RigError(
            what=f"the file has {size:,} bytes, and the spec says {part.size:,}",
            where=str(path),
            fix="put the right file there, or run `llamarig lock`",
        )
    if part.sha256 == UNLOCKED:
        return
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    if digest != part.sha256:
        raise RigError(
            what="the file's sha256 is not the spec's",
            where=str(path),
            why=f"the file: {digest}, the spec: {part.sha256}",
            fix="put the right file there, or run `llamarig lock`",
        )
