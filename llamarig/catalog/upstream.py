"""The addresses of upstream, in one place; a mirror replaces them with a file of the same form."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from llamarig.catalog.data import Entry, read
from llamarig.errors import RigError

OVERRIDE = "LLAMARIG_UPSTREAM"
"""Environment variable: path of a YAML file whose keys replace those of ``upstream.yml``."""


class Upstream(Entry):
    """Base addresses without a trailing slash."""

    model_hub: str
    engine_git: str
    engine_pull_ref: str
    """Ref of a pull request's head, with ``{number}`` in it."""
    driver_repo: str
    toolkit_archives: str
    toolkit_runfiles: str


@cache
def upstream() -> Upstream:
    """The addresses in use; raises :class:`RigError` when the override cannot be used."""
    data = read("upstream.yml")
    override = os.environ.get(OVERRIDE)
    if override:
        data.update(_read_override(Path(override)))
    try:
        return Upstream.model_validate(data)
    except ValidationError as error:
        keys = ", ".join(sorted({str(each["loc"][0]) for each in error.errors() if each["loc"]}))
        raise RigError(
            what=f"unknown or unusable keys: {keys}",
            where=override or "upstream.yml",
            fix=f"use only {', '.join(sorted(read('upstream.yml')))}, each with an address",
        ) from None


def _read_override(path: Path) -> dict[str, Any]:
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise RigError(
            what=f"the file that {OVERRIDE} names cannot be read",
            where=str(path),
            why=str(error),
            fix="correct the variable or unset it",
        ) from None
    if not isinstance(data, dict):
        raise RigError(what="a mapping of addresses is expected", where=str(path), fix="write `model-hub: https://…`")
    return data
