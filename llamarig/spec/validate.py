"""One merged document in, a spec or every problem of it out."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from llamarig.spec.host import HostSpec
from llamarig.spec.humanise import humanise
from llamarig.spec.problem import SpecProblem
from llamarig.spec.rules import View, broken
from llamarig.spec.salvage import salvage
from llamarig.spec.tree import Loc, Tree, find


@dataclass
class Validated:
    """A spec when nothing is wrong; errors refuse it, warnings and notes do not."""

    spec: HostSpec | None
    errors: list[SpecProblem] = field(default_factory=list)
    warnings: list[SpecProblem] = field(default_factory=list)
    notes: list[SpecProblem] = field(default_factory=list)


def validate(tree: Tree, root: Path) -> Validated:
    """Check a merged document; ``root`` is the project that its relative paths are about."""
    data = tree.data()
    tainted: set[Loc] = set()
    result = Validated(None)
    try:
        spec: HostSpec | None = HostSpec.model_validate(data)
    except ValidationError as error:
        result.errors.extend(humanise(tree, [*error.errors(include_url=False, include_input=False)]))
        salvaged = salvage(data, error)
        result.errors.extend(humanise(tree, [*salvaged.late]))
        spec, tainted = salvaged.spec, salvaged.tainted
    if spec is None:
        return result
    said = {"error": result.errors, "warning": result.warnings, "note": result.notes}
    for each in broken(View(spec, data, root, frozenset(tainted))):
        here, _ = find(tree, each.loc)
        problem = SpecProblem(here.path, here.line, each.message, each.fix)
        said[each.severity].append(problem)
    for found in said.values():
        found.sort(key=lambda problem: (problem.path != tree.path, problem.path, problem.line))
    if not result.errors:
        result.spec = spec
    return result
