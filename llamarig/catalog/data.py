"""Reads the catalog's YAML files: facts about the world, kept apart from code."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict

# The C parser is ten times as fast; a catalog is read at every start.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Entry(BaseModel):
    """A strict, frozen piece of the catalog with kebab-case keys."""

    model_config = ConfigDict(
        strict=True,
        frozen=True,
        extra="forbid",
        alias_generator=lambda name: name.replace("_", "-"),
    )


def read(name: str) -> dict[str, Any]:
    """The mapping in ``llamarig/catalog/<name>``, a file of this package."""
    text = files("llamarig.catalog").joinpath(name).read_text(encoding="utf-8")
    loader = _LOADER(text)
    try:
        data: dict[str, Any] = loader.get_single_data()
    finally:
        loader.dispose()
    return data
