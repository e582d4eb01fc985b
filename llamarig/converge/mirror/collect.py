"""Collect what a set of specs needs into a mirror; what is there and right is not fetched again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llamarig.converge.events import Event
from llamarig.converge.mirror.content import collect_content
from llamarig.converge.mirror.packages import collect_packages
from llamarig.converge.mirror.place import Place
from llamarig.converge.mirror.python_env import collect_python
from llamarig.converge.private import private_directory
from llamarig.converge.wanted import spec_of, wanted_for
from llamarig.errors import RigError, RigErrors
from llamarig.render.site import system_of

if TYPE_CHECKING:
    from llamarig.converge.store.shelf import Progress
    from llamarig.spec.load import LoadedHost
    from llamarig.spec.overlay import Overlay


@dataclass(frozen=True)
class Options:
    """What to collect, and what to do with what is there."""

    packages_from: tuple[LoadedHost, ...] = ()
    """Connected hosts that say which packages are needed, one a system."""
    python: bool = True
    verify: bool = False
    prune: bool = False
    overlay: Overlay | None = None
    """What was laid on the specs."""


@dataclass
class Report:
    """What a run did. Paths are below ``directory``."""

    directory: Path
    hosts: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)
    """Found damaged or gone; those that are needed were fetched again."""
    pruned: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    """Systems whose packages were never collected."""
    lacking: list[str] = field(default_factory=list)
    """Headers of kernels on a host that chose packages which no source of it offers."""
    sums: str = ""
    """sha256 of SHA256SUMS, by which the site sees that it has what was collected."""
    files: int = 0
    size: int = 0
    """Bytes of all files."""

    def to_json(self) -> dict[str, Any]:
        """The documented form of ``llamarig mirror --json``."""
        return {
            "directory": str(self.directory),
            "hosts": self.hosts,
            "added": self.added,
            "damaged": self.damaged,
            "pruned": self.pruned,
            "without-packages": self.missing,
            "without-headers": self.lacking,
            "sums-sha256": self.sums,
            "files": self.files,
            "bytes": self.size,
        }


def collect(root: Path, directory: Path, hosts: Sequence[LoadedHost], options: Options, progress: Progress) -> Report:
    """Collect for ``hosts`` of the project ``root`` into ``directory``.

    Raises :class:`RigErrors` with what could not be had for each host; everything else is there then, and the next
    run goes on from it.
    """
    report = Report(directory, [loaded.host for loaded in hosts])
    errors: list[RigError] = []
    with Place.opened(directory) as place:
        try:
            if options.verify:
                place.verify()
            errors, report.lacking = _collect(place, root, hosts, options, progress)
            if options.prune and not errors:
                place.prune()
        finally:
            report.sums = place.save()
        report.added, report.damaged, report.pruned = place.added, place.damaged, place.pruned
        report.files, report.size = len(place.manifest.files), place.manifest.size
        systems = {system_of(spec_of(loaded)) for loaded in hosts}
        report.missing = sorted(systems - set(place.manifest.debian))
    if errors:
        raise RigErrors(errors)
    return report


def _collect(
    place: Place,
    root: Path,
    hosts: Sequence[LoadedHost],
    options: Options,
    progress: Progress,
) -> tuple[list[RigError], list[str]]:
    """What could not be had, and the headers that no source offers."""
    made_not = _releases(root, hosts, options, progress)
    errors = [*made_not.values()]
    wanted: dict[str, list[dict[str, Any]]] = {}
    for loaded in hosts:
        if loaded.host in made_not:
            continue
        try:
            each = wanted_for(root, loaded).to_json()
            place.forget_host(loaded.host)
            collect_content(place, each, root, progress)
            place.save()
            wanted.setdefault(system_of(spec_of(loaded)), []).append(each)
        except RigError as error:
            errors.append(_of(loaded.host, error))
    lacking: list[str] = []
    sources = {system_of(spec_of(loaded)): loaded for loaded in options.packages_from}
    for system, needed in wanted.items():
        if system in sources:
            try:
                lacking += collect_packages(place, root, sources[system], needed, progress)
            except RigError as error:
                errors.append(error)
        else:
            place.keep_below(f"debian/{system}/")
    if options.python:
        try:
            progress("Python packages", 0, 0)
            collect_python(place)
        except RigError as error:
            errors.append(error)
    else:
        place.keep_below("python/")
    return errors, lacking


def _of(host: str, error: RigError) -> RigError:
    """The error with the name of the host that needs what is lacking."""
    named = re.search(rf"(?<![\w.-]){re.escape(host)}(?![\w.-])", error.where)
    return error if named else replace(error, where=f"{host}: {error.where}" if error.where else host)


def _releases(root: Path, hosts: Sequence[LoadedHost], options: Options, progress: Progress) -> dict[str, RigError]:
    """Have the releases of hosts that do not build their own; by host, why one cannot be had."""
    if all(spec_of(loaded).engine.build.where == "host" for loaded in hosts):
        return {}
    from llamarig.converge.build.ensure import make_releases  # noqa: PLC0415 - most hosts build their own
    from llamarig.converge.build.play import Given  # noqa: PLC0415 - as the line above

    def tell(event: Event) -> None:
        if event.get("event") == "progress":
            progress(str(event.get("label", "")), int(event.get("done", 0)), int(event.get("total", 0)))

    with private_directory() as private:
        return make_releases(root, hosts, private, tell, Given(overlay=options.overlay))
