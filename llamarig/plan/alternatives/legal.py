"""Whether a changed spec is one that ``check`` accepts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from llamarig.spec.host import HostSpec
from llamarig.spec.rules import View
from llamarig.spec.rules.base import Broken
from llamarig.spec.rules.beside import RULES as BESIDE
from llamarig.spec.rules.cache import RULES as CACHE
from llamarig.spec.rules.placement import RULES as PLACEMENT
from llamarig.spec.rules.split import RULES as SPLIT

_RULES = (*PLACEMENT, *SPLIT, *BESIDE, *CACHE)
"""The rules about what a change may touch. Those that look at the controller's files are none of them."""


def refused(before: HostSpec, changed: HostSpec) -> str | None:
    """Why the changed spec is refused; None when it is legal, or no worse than it was before the change."""
    for name, service in changed.services.items():
        if service is not before.services[name] and not _valid(changed, name):
            return f"services.{name} holds a value that no spec may hold"
    had = {each.loc for each in _errors(before)}
    return next((each.message for each in _errors(changed) if each.loc not in had), None)


def _valid(spec: HostSpec, name: str) -> bool:
    """Whether the service keeps the limits of its own keys; a copied one is not validated when it is made."""
    service = spec.services[name]
    try:
        type(service).model_validate(service.model_dump(by_alias=True, exclude_unset=True))
    except ValidationError:
        return False
    return True


def _errors(spec: HostSpec) -> Iterator[Broken]:
    # The rules ask the document for nothing but names to suggest, and none of these for a file.
    view = View(spec, {}, Path())
    for rule in _RULES:
        yield from (each for each in rule(view) if each.severity == "error")
