"""Known error texts of the tools beneath: what they mean and what to do."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from llamarig.catalog.data import Entry, read


def _compiles(pattern: str) -> str:
    re.compile(pattern)
    return pattern


class ErrorText(Entry):
    """One text by which a cause is known."""

    pattern: Annotated[str, AfterValidator(_compiles)]
    """Regular expression on one line, any case."""
    example: Annotated[str, Field(min_length=8)]
    """A line that has it."""
    severity: Literal["error", "warning", "note"]
    what: str
    cause: str
    fix: str
    source: str
    """Where the text was read or reported."""
    general: bool = False
    """Said only where nothing more exact is found in the same text."""
    page: Annotated[str, Field(pattern=r"^[a-z0-9/-]+\.md(#[a-z0-9-]+)?$")] | None = None
    """Page below docs/ that tells more, with a heading where one is meant."""
    pasted_only: bool = False
    """Healthy servers write it as well: it says something where a user asks, and nothing in a machine's log."""


class _Texts(Entry):
    texts: dict[Annotated[str, Field(pattern=r"^[a-z0-9-]+$")], ErrorText]


@cache
def error_texts() -> Mapping[str, ErrorText]:
    """All known texts by the code of their diagnosis."""
    return _Texts.model_validate({"texts": read("error_texts.yml")}).texts
