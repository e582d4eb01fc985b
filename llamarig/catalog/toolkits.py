"""Releases of the CUDA toolkit: which list of redistributable archives belongs to a version in a spec."""

from __future__ import annotations

from functools import cache

from llamarig.catalog.data import Entry, read
from llamarig.catalog.upstream import upstream

_WHOLE = 3
"""Parts of a whole version."""
_LAST_RELEASE = 9
"""A third part up to this is the number of a release; builds of nvcc have two digits and more."""


class _Toolkits(Entry):
    nvcc_builds: dict[str, list[int]]


@cache
def _toolkits() -> _Toolkits:
    return _Toolkits.model_validate(read("toolkits.yml"))


def release_of(version: str) -> str | None:
    """The release that a spec's ``cuda.version`` means: ``12.9.86`` (of nvcc), ``12.9.1`` or ``12.9``.

    None when nobody has written down which release that version of nvcc came with.
    """
    parts = version.split(".")
    minor = ".".join(parts[:2])
    if len(parts) < _WHOLE:
        return f"{minor}.0"
    if int(parts[2]) <= _LAST_RELEASE:
        return version
    builds = _toolkits().nvcc_builds.get(minor, [])
    return f"{minor}.{builds.index(int(parts[2]))}" if int(parts[2]) in builds else None


def archive_list(version: str) -> str | None:
    """The address of the list that names every redistributable archive of a toolkit with its sha256."""
    release = release_of(version)
    return f"{upstream().toolkit_archives}/redistrib_{release}.json" if release is not None else None
