"""A ``fleet.yml``: what the hosts in its directory and below have in common."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from llamarig.spec.problem import SpecProblem
from llamarig.spec.read_yaml import OUTSIDE, leads_outside, read_file
from llamarig.spec.tree import Tree, merge

FLEET_FILE = "fleet.yml"
_KEYS = ("schema-version", "defaults")


@dataclass
class Fleet:
    """Defaults that count in one directory; ``errors`` count for every host there."""

    defaults: Tree | None = None
    errors: list[SpecProblem] = field(default_factory=list)
    own_errors: list[SpecProblem] = field(default_factory=list)
    """Those of this very file, without those of the directories above."""


def read_fleet(path: Path, parent: Fleet, top: Path) -> Fleet:
    """The defaults of ``path``, below ``top``, laid on its parent's; the parent's own when there is no such file."""
    if not path.is_file():
        return parent
    if leads_outside(path, top):
        problem = SpecProblem(path, 1, *OUTSIDE)
        return Fleet(parent.defaults, [*parent.errors, problem], [problem])
    tree, problems = read_file(path)
    defaults = None
    if tree is not None:
        problems += _problems(tree)
        defaults = tree.child("defaults")
        if defaults is not None and not isinstance(defaults.value, dict):
            defaults = None
    if defaults is not None and parent.defaults is not None:
        defaults = merge(parent.defaults, defaults)
    return Fleet(defaults or parent.defaults, [*parent.errors, *problems], problems)


def _problems(tree: Tree) -> list[SpecProblem]:
    if not isinstance(tree.value, dict):
        return [SpecProblem(tree.path, tree.line, "a fleet file is a mapping", "write `defaults:` and keys below it")]
    found = []
    for key, value in tree.value.items():
        if key not in _KEYS:
            fix = "put it below `defaults:`, or into a host's own file"
            found.append(SpecProblem(tree.path, value.line, f"`{key}` is no key of a fleet file", fix))
    version = tree.child("schema-version")
    if version is None or version.value != 1:
        line = version.line if version is not None else tree.line
        found.append(SpecProblem(tree.path, line, "`schema-version` must be 1", "begin with `schema-version: 1`"))
    defaults = tree.child("defaults")
    if defaults is None or not isinstance(defaults.value, dict):
        line = defaults.line if defaults is not None else tree.line
        found.append(SpecProblem(tree.path, line, "`defaults` must be a mapping of spec keys", "write `defaults:`"))
    elif "host" in defaults.value:
        line = defaults.value["host"].line
        found.append(SpecProblem(tree.path, line, "a fleet has no `host`", "name each host in its own file"))
    return found
