"""Locking a project: every ``unlocked`` value is looked up, and belongs into the file that set it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from llamarig.converge.locking.document import Value, dotted, locate, node_at, replaced
from llamarig.converge.locking.engine import EngineLocker
from llamarig.converge.locking.files import UNLOCKED, Finder
from llamarig.converge.locking.models import ModelLocker
from llamarig.converge.locking.pulls import Pulls
from llamarig.converge.locking.result import Change, HostWork, Locked
from llamarig.errors import RigError
from llamarig.spec.fleet import FLEET_FILE
from llamarig.spec.load import INVENTORY, LoadedHost
from llamarig.spec.tree import Loc


def lock_hosts(root: Path, hosts: list[LoadedHost], finder: Finder, pulls: Pulls | None = None) -> Locked:
    """Look up everything that the hosts leave open. Writes nothing; a problem of one value keeps no other back."""
    result = Locked()
    models = ModelLocker(root, finder, result)
    engines = EngineLocker(root, finder, pulls or Pulls(), result)
    for loaded in hosts:
        if loaded.spec is None:
            continue
        work = HostWork(loaded.host, loaded.path, loaded.spec)
        result.hosts.append(work)
        models.lock(work)
        engines.lock(work)
        work.attempt((), partial(_enter, work, root, result))
    return result


def _enter(work: HostWork, root: Path, result: Locked) -> None:
    """Put the values into the files that set them: the host's own, or the nearest fleet.yml above it."""
    for path, entries in _by_file(work, root).items():
        text = path.read_bytes().decode()
        before, now = result.files.get(path, (text, text))
        nodes = locate(now, path)
        fresh: dict[Loc, Value] = {}
        for loc, own, value in entries:
            node = node_at(nodes, own)
            if node is None or node.value == str(value):
                continue
            if node.value != UNLOCKED and loc[-1] != "header":
                why = f"{node.value} and {value}; it moved while it was locked, or the hosts differ"
                raise RigError("two hosts need different values here", dotted(own), why)
            fresh[own] = value
            work.changes.append(Change(path, node.start_mark.line + 1, dotted(own), node.value, value))
        result.files[path] = (before, replaced(now, path, fresh) if fresh else now)


def _by_file(work: HostWork, root: Path) -> dict[Path, list[tuple[Loc, Loc, Value]]]:
    """The values by the file that sets each, with the location in the spec and in that file."""
    places = list(_files_of(work.path, root))
    nodes = {path: locate(path.read_bytes().decode(), path) for path, _ in places}
    found: dict[Path, list[tuple[Loc, Loc, Value]]] = {}
    for loc, value in work.values.items():
        for path, prefix in places:
            if node_at(nodes[path], prefix + loc) is not None:
                found.setdefault(path, []).append((loc, prefix + loc, value))
                break
        else:
            raise RigError("no file says where this value stands", dotted(loc))
    return found


def _files_of(path: Path, root: Path) -> Iterator[tuple[Path, Loc]]:
    """A host's file and the fleet files above it, nearest first, with where a spec begins in each."""
    yield path, ()
    top = root / INVENTORY if (root / INVENTORY).is_dir() else root
    for folder in path.parents:
        if (folder / FLEET_FILE).is_file():
            yield folder / FLEET_FILE, ("defaults",)
        if folder == top:
            return
