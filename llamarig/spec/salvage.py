"""Makes a spec of a document that has errors, so that the rules can still find the rest of them.

What is wrong is left out or filled with something legal, and remembered: a
rule whose finding rests on such a place says nothing.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from llamarig.spec.base import SpecValueError
from llamarig.spec.host import HostSpec
from llamarig.spec.tree import Loc, Step

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

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


@dataclass
class Salvaged:
    """A spec without the broken places, or None when none could be made."""

    spec: HostSpec | None = None
    tainted: set[Loc] = field(default_factory=set)
    """The broken places."""
    late: list[ErrorDetails] = field(default_factory=list)
    """Errors of a whole section that show only once its single values are legal."""


def salvage(data: Any, error: ValidationError) -> Salvaged:
    """Mend a document, round by round, until it is a spec."""
    data = copy.deepcopy(data)
    result = Salvaged()
    for attempt in range(_ROUNDS):
        errors = error.errors(include_url=False, include_input=False)
        places = [(_place(data, each["loc"]), each) for each in errors]
        if attempt:
            result.late.extend(each for place, each in places if _is_own(place, each, result.tainted))
        for place, each in places:
            _mend(data, place, each, result.tainted)
        try:
            result.spec = HostSpec.model_validate(data)
        except ValidationError as again:
            error = again
        else:
            return result
    return result


def _place(data: Any, loc: tuple[Step, ...]) -> Loc:
    """The steps of a location that lead somewhere in the document; others name branches of a union."""
    taken: list[Step] = []
    here = data
    for step in loc:
        named = isinstance(here, dict) and step in here
        numbered = isinstance(here, list) and isinstance(step, int) and 0 <= step < len(here)
        if named or numbered:
            here = here[step]
            taken.append(step)
    return tuple(taken)


def _is_own(place: Loc, error: ErrorDetails, tainted: set[Loc]) -> bool:
    """Whether a section is wrong by itself, not because something was taken out of it."""
    cause = error.get("ctx", {}).get("error")
    if not isinstance(cause, SpecValueError) or not cause.keys:
        return False
    rests_on = [(*place, key) for key in cause.keys]
    return not any(loc[: len(bad)] == bad for loc in rests_on for bad in tainted)


def _mend(data: Any, place: Loc, error: ErrorDetails, tainted: set[Loc]) -> None:
    if error["type"] == "missing":
        key = str(error["loc"][-1])
        parent = _at(data, place)
        if key in _PLACEHOLDERS and isinstance(parent, dict):
            parent[key] = copy.deepcopy(_PLACEHOLDERS[key])
            tainted.add((*place, key))
            return
    if place:
        tainted.add(place)
        _remove(_at(data, place[:-1]), place[-1])


def _at(data: Any, place: Loc) -> Any:
    for step in place:
        try:
            data = data[step]
        except (KeyError, IndexError, TypeError):
            return None
    return data


def _remove(parent: Any, step: Step) -> None:
    if isinstance(parent, dict):
        parent.pop(step, None)
    elif isinstance(parent, list):
        # Taking out one item would shift the places of those behind it, so they go too.
        del parent[int(step) :]
