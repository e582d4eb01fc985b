"""Templates: the text of files, with every decision already taken."""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from llamarig.paths import data_root


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(data_root() / "templates"),
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701 - unit files are no HTML; words are quoted by quoting.py
        keep_trailing_newline=True,
    )


def fill(template: str, **values: Any) -> str:
    """The text of ``templates/<template>`` with ``values``; a value that is missing is an error."""
    return _environment().get_template(template).render(**values)


def verbatim(path: str) -> str:
    """The text of a file under ``templates/`` that is installed as it is."""
    return (data_root() / "templates" / path).read_text(encoding="utf-8")
