"""A YAML document as a tree in which every value knows its file and line.

The tree is what fleet defaults are merged on, and what turns the location of
a problem ("services.chat.port") back into a line that the user can open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Scalar = str | int | float | bool | None
Step = str | int
Loc = tuple[Step, ...]
"""Where a value stands: keys and list positions from the top."""


@dataclass(slots=True)
class Tree:
    """One value and where it was written; ``text`` is a scalar as the user spelled it."""

    value: Scalar | dict[str, Tree] | list[Tree]
    path: Path
    line: int
    text: str = ""
    plain: bool = False
    """Whether a scalar stood without quotes."""

    def data(self) -> Any:
        """The value as plain dictionaries, lists and scalars."""
        value = self.value
        if isinstance(value, dict):
            return {key: child.data() for key, child in value.items()}
        if isinstance(value, list):
            return [child.data() for child in value]
        return value

    def child(self, step: Step) -> Tree | None:
        """The value one step down, or None where there is none."""
        value = self.value
        if isinstance(value, dict):
            return value.get(step) if isinstance(step, str) else None
        if isinstance(value, list) and isinstance(step, int) and 0 <= step < len(value):
            return value[step]
        return None


def find(tree: Tree, loc: Sequence[Step]) -> tuple[Tree, Loc]:
    """The deepest value on the way to ``loc``, and the steps that led there.

    Steps that name nothing in the document (a missing key, the names that
    pydantic gives to the branches of a union) are passed over.
    """
    here, taken = tree, []
    for step in loc:
        below = here.child(step)
        if below is not None:
            here = below
            taken.append(step)
    return here, tuple(taken)


def merge(under: Tree, over: Tree) -> Tree:
    """``over`` laid on ``under``: maps merge, everything else replaces; lines stay those of the origin."""
    if not (isinstance(under.value, dict) and isinstance(over.value, dict)):
        return over
    merged = dict(under.value)
    for key, child in over.value.items():
        below = merged.get(key)
        merged[key] = child if below is None else merge(below, child)
    return Tree(merged, over.path, over.line)


def dotted(loc: Loc) -> str:
    """``services.chat.listen.port``; a list position as ``[0]``."""
    text = ""
    for step in loc:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text
