"""Debian packages for hosts that reach no archive: one connected host lets its apt choose, the controller fetches."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llamarig.converge.connection import connection_variables
from llamarig.converge.explain import explain
from llamarig.converge.mirror import apt_index
from llamarig.converge.mirror.manifest import Entry
from llamarig.converge.mirror.openpgp import sign
from llamarig.converge.mirror.place import Place
from llamarig.converge.private import private_directory
from llamarig.converge.run import run_playbook
from llamarig.converge.store import download
from llamarig.converge.store.pip_config import pip_config
from llamarig.converge.wanted import spec_of
from llamarig.errors import ExitCode, RigError
from llamarig.render.site import SOURCE, system_of

if TYPE_CHECKING:
    from llamarig.converge.store.shelf import Progress
    from llamarig.spec.host import HostSpec
    from llamarig.spec.load import LoadedHost

_HEADERS = "linux-headers-amd64"
"""Those of the archive's present kernel: they fit a host that runs it. Those of other kernels are the named host's."""
_MOST_LACKING = 64
_SOURCES, _PREFERENCES = "/etc/apt/sources.list.d/", "/etc/apt/preferences.d/"


def asked(wanted: Sequence[Mapping[str, Any]]) -> tuple[list[str], dict[str, str]]:
    """Names (with a version where one is pinned) that hosts of one system need, and the lists that offer them.

    The driver's packages are chosen by the pin that the hosts themselves get.
    """
    names: set[str] = set()
    files: dict[str, str] = {}
    for each in wanted:
        names |= {name if version is None else f"{name}={version}" for name, version in each["packages"].items()}
        driver = each["driver"]
        if driver is not None:
            names |= {*driver["packages"], _HEADERS}
            files |= {
                file["path"]: file["content"]
                for file in driver["files"]
                if file["path"].startswith((_SOURCES, _PREFERENCES)) and file["path"] != SOURCE
            }
    return sorted(names), files


def collect_packages(
    place: Place, root: Path, source: LoadedHost, wanted: Sequence[Mapping[str, Any]], progress: Progress
) -> list[str]:
    """Bring the packages of all ``wanted`` hosts, which run the system of ``source``, and make their index.

    With a driver come the headers of the kernels of ``source``; returned are those that no source of it offers.
    Raises :class:`RigError`; nothing was changed on any host.
    """
    spec = spec_of(source)
    names, files = asked(wanted)
    answer = _resolve(root, spec, names, files, any(each["driver"] is not None for each in wanted))
    found = answer["packages"]
    names = sorted({*names, *map(str, answer.get("headers", []))})
    system = system_of(spec)
    directory = f"debian/{system}"
    stanzas: dict[str, str] = {}
    with download.client(pip_config()) as http:
        done, total = 0, sum(int(package["size"]) for package in found)
        for package in found:
            stanza = str(package["stanza"])
            try:
                name = apt_index.file_name(stanza)
            except ValueError as error:
                raise RigError("what apt said of a package makes no sense", spec.host, str(error)) from error
            if name in stanzas:
                raise RigError("apt chose one package twice", spec.host, name)
            stanzas[name] = stanza
            _fetch(place, http, package, f"{directory}/{name}")
            done += int(package["size"])
            progress(f"packages of {system}", done, total)
    _index(place, system, directory, stanzas, names)
    return [str(name)[:100] for name in answer.get("lacking", [])[:_MOST_LACKING]]


def _resolve(root: Path, spec: HostSpec, names: list[str], files: dict[str, str], headers: bool) -> dict[str, Any]:
    with private_directory() as private:
        variables = {
            **connection_variables(spec, root, private),
            "llamarig_mirror_packages": names,
            "llamarig_mirror_files": files,
            "llamarig_mirror_headers": headers,
        }
        run = run_playbook("mirror", {spec.host: variables}, private)
    outcome = run.hosts[spec.host]
    found = outcome.results.get("rig_debs", {})
    if outcome.failures:
        raise explain(spec.host, outcome.failures[-1])
    if not isinstance(found.get("packages"), list):
        raise RigError("Ansible ended without an answer", spec.host, run.messages[-4000:], code=ExitCode.HOST_FAILED)
    if found.get("architecture") != system_of(spec).rpartition("-")[2]:
        raise RigError("the host is of another architecture than llamarig provisions", spec.host)
    return dict(found)


def _fetch(place: Place, http: Any, package: Mapping[str, Any], path: str) -> None:
    sha256, size = str(package["sha256"]), int(package["size"])
    if place.found(path, sha256):
        place.keep(path, Entry(sha256, size, "package", path.rpartition("/")[2]))
        return
    temporary = place.scratch(f"{sha256}.deb")
    wish = download.Wish(str(package["uri"]), path.rpartition("/")[2], size)
    download.fetch(http, wish, temporary, lambda _label, _done, _total: None)
    place.adopt(temporary, path, sha256, "package", wish.label)


def _index(place: Place, system: str, directory: str, stanzas: Mapping[str, str], names: list[str]) -> None:
    """The signed index; one that names the same packages stays as it is, so that no host sees a new key for nothing."""
    paths = [f"{directory}/{name}" for name in ("InRelease", "Packages", "Packages.gz", "key.asc")]
    held = place.manifest.debian.get(system)
    before = place.root / paths[1]
    there = before.read_text(encoding="utf-8") if all(map(place.holds, paths)) else None
    if held is not None and apt_index.same_packages(there, stanzas.values()):
        for path in paths:
            place.keep(path, place.manifest.files[path])
        held["packages"] = names
        return
    at = int(time.time())
    text = apt_index.packages_text(stanzas)
    files = {"Packages": text.encode(), "Packages.gz": apt_index.compressed(text)}
    signed = sign(apt_index.release_text(system, files, at), "llamarig mirror", at)
    files |= {"InRelease": signed.text.encode(), "key.asc": ("\n".join(signed.key) + "\n").encode()}
    for name, content in files.items():
        place.file(f"{directory}/{name}", "index", f"index of {system}", content)
    place.manifest.debian[system] = {
        "directory": directory,
        "key": list(signed.key),
        "fingerprint": signed.fingerprint,
        "packages": names,
    }
