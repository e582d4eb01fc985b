"""The mirror of a host's site as data: where it lies, and the apt source that it gives the host."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from llamarig.errors import RigError
from llamarig.render.openpgp import KeyFormatError, armoured, fingerprints
from llamarig.render.text import fill
from llamarig.render.wanted import WantedFile
from llamarig.spec.controller_path import below
from llamarig.spec.host import HostSpec

MANIFEST = "manifest.json"
SOURCE = "/etc/apt/sources.list.d/llamarig-mirror.sources"
PUSHED = "/var/lib/llamarig/mirror"
"""Where packages that the controller copies lie on the host, while they are installed."""
ARCHITECTURE = "amd64"
_LARGEST = 64 << 20
"""Bytes of a manifest; one that names 10,000 packages has 3 MiB."""


def mirror_of(spec: HostSpec, project_root: Path) -> dict[str, str]:
    """``path`` on the controller and ``url`` for the host; each empty where the spec gives none."""
    mirror = spec.mirror
    path = str(below(project_root, mirror.path).absolute()) if mirror and mirror.path else ""
    return {"path": path, "url": mirror.url.rstrip("/") if mirror and mirror.url else ""}


def system_of(spec: HostSpec) -> str:
    """What the packages of a host are kept under: ``debian-13-amd64``."""
    return f"{spec.os.distribution}-{spec.os.release}-{ARCHITECTURE}"


def read_manifest(mirror: Path) -> dict[str, Any]:
    """The manifest of a mirror (docs/reference/json.md). Raises :class:`RigError` when there is none to be read."""
    path = mirror / MANIFEST
    try:
        with path.open("rb") as file:
            found = json.loads(file.read(_LARGEST))
    except (OSError, ValueError, RecursionError) as error:
        raise RigError(
            what="there is no mirror with a readable manifest",
            where=str(path),
            why=str(error),
            fix="make one with `llamarig mirror DIR HOST`, copy it whole, and name its directory in `mirror.path`",
        ) from error
    if not isinstance(found, dict) or found.get("schema") != 1:
        raise RigError("the mirror's manifest is of another version", str(path), fix="collect it with this llamarig")
    return found


def apt_source(spec: HostSpec, project_root: Path) -> tuple[WantedFile, ...]:
    """The list by which apt on the host takes packages from the site; none without an address or packages there.

    A mirror that is not there yet gives none, so that it can be planned with and collected for; apply refuses it.
    """
    place = mirror_of(spec, project_root)
    text = _list(spec, place, f"{place['url']}/debian/{system_of(spec)}/") if place["url"] else ""
    return (WantedFile(SOURCE, text),) if text else ()


def pushed_source(spec: HostSpec, project_root: Path) -> str:
    """The list for packages that the controller copies for one transaction; empty where the host has an address."""
    place = mirror_of(spec, project_root)
    return "" if place["url"] else _list(spec, place, f"file:{PUSHED}/")


def _list(spec: HostSpec, place: dict[str, str], uri: str) -> str:
    """The text of a list; empty where no packages of the host's system are held."""
    if not place["path"] or not (Path(place["path"]) / MANIFEST).is_file():
        return ""
    held = read_manifest(Path(place["path"])).get("debian", {}).get(system_of(spec))
    if not isinstance(held, dict):
        return ""
    try:
        # Made anew from its packets: no line of the manifest gets into the list as it is.
        key = armoured("\n".join(map(str, held["key"])).encode())
        fingerprints("\n".join(key).encode())
    except (KeyError, TypeError, KeyFormatError) as error:
        raise RigError(
            what="the mirror's manifest holds no key for its packages",
            where=str(Path(place["path"]) / MANIFEST),
            why=str(error),
            fix="copy the mirror again, or collect its packages anew",
        ) from error
    return fill("etc/apt/sources.list.d/llamarig-mirror.sources.j2", uri=uri, key=key)
