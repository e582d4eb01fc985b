"""Reads a project: all host specs below a directory, fleet defaults merged in, every problem with its line."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from pathlib import Path

from llamarig.errors import RigError, RigErrors
from llamarig.spec.builders import builder_problems
from llamarig.spec.fleet import FLEET_FILE, Fleet, read_fleet
from llamarig.spec.fleet_file import NO_SECTIONS, FleetSections
from llamarig.spec.fleet_labels import label_warnings
from llamarig.spec.host import HostSpec
from llamarig.spec.natural import natural_path
from llamarig.spec.overlay import Overlay, looks_like_one
from llamarig.spec.problem import SpecProblem
from llamarig.spec.read_yaml import OUTSIDE, leads_outside, read_file
from llamarig.spec.tree import find, merge
from llamarig.spec.validate import validate

INVENTORY = "inventory"
SUFFIX = ".yml"


@dataclass
class LoadedHost:
    """One spec file: the host it names, its spec when it has no error, and all that is wrong with it."""

    host: str
    path: Path
    spec: HostSpec | None
    errors: list[SpecProblem] = field(default_factory=list)
    warnings: list[SpecProblem] = field(default_factory=list)
    notes: list[SpecProblem] = field(default_factory=list)
    """What the spec asks for against the rule, with the reason that it gives."""
    line: int = 0
    """Where the file names the host; 0 when it does not, and the file's own name stands for it."""
    builder_at: tuple[Path, int] | None = None
    """Where `engine.build.builder` stands, which is checked once all hosts are read."""
    fleet: FleetSections = NO_SECTIONS
    """What the fleet files above say beside defaults."""


@dataclass
class Project:
    """A directory with specs, header sidecars and patches."""

    root: Path
    hosts: list[LoadedHost]
    errors: list[SpecProblem] = field(default_factory=list)
    """What is wrong with files that belong to no single host."""
    warnings: list[SpecProblem] = field(default_factory=list)
    """What such a file says to no effect."""

    @property
    def headers_dir(self) -> Path:
        """Where ``lock`` keeps the header sidecars of models, by sha256."""
        return self.root / "headers"

    @property
    def patches_dir(self) -> Path:
        """Where ``lock`` keeps patches, by sha256."""
        return self.root / "patches"

    def valid(self, names: list[str] | None) -> list[LoadedHost]:
        """The named hosts, or all when ``names`` is None, in the order asked for.

        Raises :class:`RigErrors` with every error of the chosen specs, and
        :class:`RigError` for a host that no spec names or when there is no spec at all.
        """
        chosen = list(self.hosts) if names is None else [self.named(name) for name in dict.fromkeys(names)]
        errors = list(self.errors) if names is None else []
        for host in chosen:
            errors.extend(host.errors)
        if errors:
            raise RigErrors([problem.to_error() for problem in dict.fromkeys(errors)])
        if not chosen:
            raise RigError(
                what=f"no host spec below {self.root}",
                fix="write one with `llamarig init`, or name the project's directory with -C",
            )
        return chosen

    def named(self, name: str) -> LoadedHost:
        """The host of that name, whatever is wrong with it; raises :class:`RigError` when no spec names it."""
        for host in self.hosts:
            if host.host == name:
                return host
        names = [host.host for host in self.hosts]
        near = difflib.get_close_matches(name, names, n=3)
        if near:
            fix = f"did you mean {' or '.join(near)}?"
        elif names:
            fix = f"known hosts: {', '.join(sorted(names)[:8])}"
        else:
            fix = "there is no spec here: write one with `llamarig init`, or name the project's directory with -C"
        raise RigError(what=f"no spec names the host {name!r}", where=str(self.root), fix=fix)


def is_project(root: Path) -> bool:
    """Whether :func:`load_project` would look at any file there."""
    return (root / INVENTORY).is_dir() or any(root.glob(f"*{SUFFIX}"))


def load_project(root: Path, overlay: Overlay | None = None) -> Project:
    """All specs of a project: ``inventory/**/*.yml`` when that folder exists, else ``*.yml`` in ``root``.

    ``overlay`` is laid on the host that it names. Never raises for the content of a file; what is wrong stands in each
    host's ``errors``.
    """
    inventory = root / INVENTORY
    if inventory.is_dir():
        project = load_files(root, sorted(inventory.rglob(f"*{SUFFIX}"), key=natural_path), inventory, overlay)
        for path in sorted(inventory.rglob("*.yaml")):
            message = "the file is not read: specs end in .yml"
            project.errors.append(SpecProblem(path, 1, message, f"rename it to {path.stem}{SUFFIX}"))
    else:
        project = load_files(root, sorted(root.glob(f"*{SUFFIX}"), key=natural_path), root, overlay)
    for host in project.hosts:
        if not host.errors and host.host != host.path.stem:
            message = f"the file {host.path.name} names the host {host.host}, and commands know it by that name alone"
            host.notes.append(SpecProblem(host.path, host.line, message, f"name the file {host.host}{SUFFIX}"))
    return project


def load_files(root: Path, paths: list[Path], top: Path, overlay: Overlay | None = None) -> Project:
    """The given spec files as a project; ``top`` is the highest directory whose ``fleet.yml`` counts."""
    fleets: dict[Path, Fleet] = {}
    hosts = [_load_host(path, top, fleets, root, overlay) for path in paths if path.name != FLEET_FILE]
    project = Project(root, hosts)
    told = {path: _fleet_of(path.parent, top, fleets) for path in paths if path.name == FLEET_FILE}
    for fleet in told.values():
        project.errors.extend(fleet.own_errors)
    _unique_hosts(project)
    for host, problem in [*builder_problems(project.hosts)]:
        host.errors.append(problem)
        host.spec = None
    project.warnings.extend(label_warnings(told, project.hosts))
    return project


def _fleet_of(directory: Path, top: Path, fleets: dict[Path, Fleet]) -> Fleet:
    """Defaults for specs in ``directory``: its own fleet.yml laid on those above it, up to ``top``."""
    known = fleets.get(directory)
    if known is None:
        above = Fleet() if directory == top or top not in directory.parents else None
        parent = above if above is not None else _fleet_of(directory.parent, top, fleets)
        known = read_fleet(directory / FLEET_FILE, parent, top)
        fleets[directory] = known
    return known


def _load_host(path: Path, top: Path, fleets: dict[Path, Fleet], root: Path, overlay: Overlay | None) -> LoadedHost:
    fleet = _fleet_of(path.parent, top, fleets)
    if leads_outside(path, top, root):
        return LoadedHost(path.stem, path, None, [*fleet.errors, SpecProblem(path, 1, *OUTSIDE)])
    tree, problems = read_file(path)
    loaded = LoadedHost(path.stem, path, None, [*fleet.errors, *problems], fleet=fleet.sections)
    if tree is None:
        return loaded
    name = tree.child("host")
    if name is not None and isinstance(name.value, str) and name.value:
        loaded.host, loaded.line = name.value, name.line
    if not isinstance(tree.value, dict):
        loaded.errors.append(
            SpecProblem(path, tree.line, "a host spec is a mapping of keys", "begin with `host: name`")
        )
        return loaded
    if looks_like_one(tree):
        message = "this looks like an overlay, and files here are host specs"
        fix = f"move it out of {INVENTORY}/, and lay it on with `llamarig --overlay FILE`"
        loaded.errors.append(SpecProblem(path, (tree.child("replace") or tree).line, message, fix))
        loaded.host, loaded.line = path.stem, 0
        return loaded
    merged = tree if fleet.defaults is None else merge(fleet.defaults, tree)
    if overlay is not None and overlay.host == loaded.host:
        merged, problems = overlay.laid_on(merged)
        loaded.errors.extend(problems)
    result = validate(merged, root)
    loaded.errors.extend(result.errors)
    loaded.warnings.extend(result.warnings)
    loaded.notes.extend(result.notes)
    if not loaded.errors:
        loaded.spec = result.spec
        here, _ = find(merged, ("engine", "build", "builder"))
        loaded.builder_at = (here.path, here.line)
    return loaded


def _unique_hosts(project: Project) -> None:
    first: dict[str, LoadedHost] = {}
    for host in project.hosts:
        if host.line == 0:
            continue
        other = first.setdefault(host.host, host)
        if other is host:
            continue
        for one, two in ((host, other), (other, host)):
            message = f"the host name {host.host!r} is also used by {two.path}"
            one.errors.append(SpecProblem(one.path, one.line, message, "give every spec its own `host:`"))
            one.spec = None


__all__ = ["LoadedHost", "Project", "SpecProblem", "load_files", "load_project"]
