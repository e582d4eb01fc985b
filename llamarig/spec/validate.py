"""One merged document in, a spec or every problem of it out."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from llamarig.spec.host import HostSpec
from llamarig.spec.problem import SpecProblem
from llamarig.spec.tree import Tree, find


@dataclass
class Validated:
    """A spec when nothing is wrong; errors refuse it, warnings do not."""

    spec: HostSpec | None
    errors: list[SpecProblem] = field(default_factory=list)
    warnings: list[SpecProblem] = field(default_factory=list)


def validate(tree: Tree, root: Path) -> Validated:  # noqa: ARG001 - thin version
    """Check a merged document; ``root`` is the project that its relative paths are about."""
    try:
        return Validated(HostSpec.model_validate(tree.data()))
    except ValidationError as error:
        problems = []
        for each in error.errors():
            here, taken = find(tree, each["loc"])
            problems.append(SpecProblem(here.path, here.line, f"{'.'.join(map(str, taken))}: {each['msg']}"))
        return Validated(None, problems)
