"""Makes a spec of a document that has errors, so that the rules can still find the rest of them.

What is wrong is left out or filled with something legal, and remembered: a
rule whose finding rests on such a place says nothing.
"""

from __future__ import annotations

import copy
from typing import Any

from pydantic import ValidationError

from llamarig.spec.host import HostSpec
from llamarig.spec.tree import Loc, Step

_ROUNDS = 12
_PLACEHOLDERS: dict[str, Any] = {
    "schema-version": 1,
    "host": "placeholder",
    "os": {"distribution": "debian", "release": "13"},
    "distribution": "debian",
    "release": "13",
    "engine": {
        "commit": "0" * 40,
        "build-number": 1,
        "source": {"git": "https://placeholder.invalid/engine.git"},
        "backend": "cpu",
    },
    "commit": "0" * 40,
    "build-number": 1,
    "source": {"git": "https://placeholder.invalid/engine.git"},
    "backend": "cpu",
    "models": {"placeholder": {"host-path": "/placeholder.gguf", "sha256": "unlocked", "size": "unlocked"}},
    "services": {"placeholder": {"model": "placeholder", "context": 4096, "listen": {"port": 65535}}},
    "sha256": "unlocked",
    "size": "unlocked",
    "model": "placeholder",
    "context": 4096,
    "listen": {"port": 65535},
    "version": "1.0",
    "flavour": "open",
    "reason": "placeholder",
    "total-mib": 1 << 20,
}
"""Something legal for keys that must be there."""


def salvage(data: Any, error: ValidationError) -> tuple[HostSpec | None, set[Loc]]:
    """A spec without the broken places, or None; and those places."""
    data = copy.deepcopy(data)
    tainted: set[Loc] = set()
    for _ in range(_ROUNDS):
        for each in error.errors(include_url=False, include_context=False, include_input=False):
            _mend(data, each["loc"], each["type"] == "missing", tainted)
        try:
            return HostSpec.model_validate(data), tainted
        except ValidationError as again:
            error = again
    return None, tainted


def _mend(data: Any, loc: tuple[Step, ...], missing: bool, tainted: set[Loc]) -> None:
    parents: list[Any] = [data]
    taken: list[Step] = []
    for step in loc:
        below = _below(parents[-1], step)
        if below is not None:
            parents.append(below)
            taken.append(step)
    if missing:
        key = str(loc[-1])
        if key in _PLACEHOLDERS and isinstance(parents[-1], dict):
            parents[-1][key] = copy.deepcopy(_PLACEHOLDERS[key])
            tainted.add((*taken, key))
            return
    if not taken:
        return
    tainted.add(tuple(taken))
    _remove(parents[-2], taken[-1])


def _below(parent: Any, step: Step) -> Any:
    """The value one step down; a null counts as a value that can be removed."""
    if isinstance(parent, dict) and step in parent:
        return _NULL if parent[step] is None else parent[step]
    if isinstance(parent, list) and isinstance(step, int) and 0 <= step < len(parent):
        return _NULL if parent[step] is None else parent[step]
    return None


_NULL = object()


def _remove(parent: Any, step: Step) -> None:
    if isinstance(parent, dict):
        parent.pop(step, None)
    elif isinstance(parent, list):
        # A removed item would shift its neighbours' places, so the list is emptied from here on.
        del parent[int(step) :]
