"""Finds what a spec leaves `unlocked`."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel

from llamarig.spec.host import HostSpec
from llamarig.spec.tree import Loc


def unlocked_places(spec: HostSpec) -> Iterator[Loc]:
    """Where a hash, size, revision or head says ``unlocked``, in the order of the document."""
    for section in ("cuda", "engine", "models"):
        yield from _places(getattr(spec, section), (section,))


def _places(value: object, at: Loc) -> Iterator[Loc]:
    if isinstance(value, BaseModel):
        for name, field in type(value).model_fields.items():
            yield from _places(getattr(value, name), (*at, str(field.alias)))
    elif isinstance(value, dict):
        for key, below in value.items():
            yield from _places(below, (*at, str(key)))
    elif isinstance(value, list):
        for index, below in enumerate(value):
            yield from _places(below, (*at, index))
    elif value == "unlocked" and (at[-1] in ("sha256", "size", "revision", "head") or at[:-1] == ("cuda", "wheels")):
        yield at
