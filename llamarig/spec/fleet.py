"""A ``fleet.yml``: what the hosts in its directory and below have in common, and how the fleet is driven."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import ValidationError

from llamarig.spec.fleet_file import NO_SECTIONS, SECTIONS, FleetSections
from llamarig.spec.humanise import humanise
from llamarig.spec.problem import SpecProblem
from llamarig.spec.read_yaml import OUTSIDE, leads_outside, read_file
from llamarig.spec.tree import Tree, merge

FLEET_FILE = "fleet.yml"
_KEYS = ("schema-version", "defaults", *SECTIONS)


@dataclass(frozen=True)
class Fleet:
    """What counts in one directory; ``errors`` count for every host there."""

    defaults: Tree | None = None
    sections: FleetSections = NO_SECTIONS
    """Those of this directory, laid on those of the directories above."""
    section_trees: dict[str, Tree] = field(default_factory=dict)
    errors: tuple[SpecProblem, ...] = ()
    own_errors: tuple[SpecProblem, ...] = ()
    """Those of this very file, without those of the directories above."""


def read_fleet(path: Path, parent: Fleet, top: Path) -> Fleet:
    """What ``path``, below ``top``, says, laid on its parent's; the parent's own when there is no such file."""
    if not path.is_file():
        return parent
    if leads_outside(path, top):
        return _broken(parent, [SpecProblem(path, 1, *OUTSIDE)])
    tree, problems = read_file(path)
    if tree is None:
        return _broken(parent, problems)
    problems += _problems(tree)
    trees, sections, wrong = _sections(tree, parent)
    problems += wrong
    defaults = tree.child("defaults")
    if defaults is None or not isinstance(defaults.value, dict):
        defaults = parent.defaults
    elif parent.defaults is not None:
        defaults = merge(parent.defaults, defaults)
    return Fleet(defaults, sections, trees, (*parent.errors, *problems), tuple(problems))


def _broken(parent: Fleet, problems: list[SpecProblem]) -> Fleet:
    return replace(parent, errors=(*parent.errors, *problems), own_errors=tuple(problems))


def _sections(tree: Tree, parent: Fleet) -> tuple[dict[str, Tree], FleetSections, list[SpecProblem]]:
    """The sections that count here, as trees and as a model, and what is wrong with those of this file."""
    trees = dict(parent.section_trees)
    for name in SECTIONS:
        own = tree.child(name)
        if own is not None:
            trees[name] = merge(trees[name], own) if name in trees else own
    whole = Tree(dict(trees), tree.path, tree.line)
    try:
        return trees, FleetSections.model_validate(whole.data()), []
    except ValidationError as error:
        found = humanise(whole, [*error.errors(include_url=False, include_input=False)])
        return trees, parent.sections, [each for each in found if each not in parent.errors]


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
    if defaults is None and any(name in tree.value for name in SECTIONS):
        return found
    if defaults is None or not isinstance(defaults.value, dict):
        line = defaults.line if defaults is not None else tree.line
        found.append(SpecProblem(tree.path, line, "`defaults` must be a mapping of spec keys", "write `defaults:`"))
    elif "host" in defaults.value:
        line = defaults.value["host"].line
        found.append(SpecProblem(tree.path, line, "a fleet has no `host`", "name each host in its own file"))
    return found
