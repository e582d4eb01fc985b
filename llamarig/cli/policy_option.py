"""Options that stand in for a key of a fleet.yml's `rollout`: read, limited and refused as that key is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def _said(key: str, text: str) -> int:
    """The number behind ``--key``; a usage error in the words in which the key itself would be refused."""
    from pydantic import ValidationError

    from llamarig.spec.humanise import humanise
    from llamarig.spec.rollout import Rollout
    from llamarig.spec.scalar import resolve
    from llamarig.spec.tree import Tree

    nowhere = Path()
    value = Tree(resolve(text), nowhere, 0, text, plain=True)
    try:
        return int(getattr(Rollout.model_validate({key: value.data()}), key))
    except ValidationError as error:
        tree = Tree({key: value}, nowhere, 0)
        [problem] = humanise(tree, [*error.errors(include_url=False, include_input=False)])
        raise typer.BadParameter(f"{problem.message}; {problem.fix}") from None


def _canary(text: str) -> int:
    return _said("canary", text)


def _failures(text: str) -> int:
    return _said("failures", text)


Canary = Annotated[
    int | None, typer.Option("--canary", parser=_canary, metavar="N", help="Hosts that go first, alone.")
]
Failures = Annotated[
    int | None, typer.Option("--failures", parser=_failures, metavar="N", help="Hosts that may fail, in all.")
]
