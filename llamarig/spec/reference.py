"""The spec reference, written from the models; ``python -m llamarig.spec.reference`` writes docs/reference/spec.md."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from llamarig.spec.docs import field_docs, plain
from llamarig.spec.fleet_file import FleetSections
from llamarig.spec.host import HostSpec
from llamarig.spec.keys import OPENING
from llamarig.spec.rules import RULES
from llamarig.spec.walk import branches
from llamarig.spec.words import PATTERNS

FILE = Path("docs/reference/spec.md")

_BELOW = "keys, below"
_HEAD = """# Spec reference

Written from the models by `python -m llamarig.spec.reference`; do not edit it here.

A host spec is a YAML file below `inventory/` (or, where there is no such folder, a `*.yml` file in the
project's directory). Keys are in kebab-case; a key that is not listed here is an error. Only `true` and
`false` are booleans: `on`, `off`, `yes` and `no` are text. A file named `fleet.yml` holds `defaults` for all
hosts in its directory and below: maps merge, lists and single values replace.
`unlocked` stands where a hash, size, revision or head is not known yet: such a spec can be planned and
rendered, and `apply` refuses it until `llamarig lock` has filled it in.

`llamarig check` reports every error of every file in one run. Editors complete and check specs with the
schemas in `schema/`; the first line of a spec names its schema.
"""


_FLEET = """## fleet.yml

Beside `schema-version` and `defaults` a fleet.yml may have the sections below. A section is laid on that of the
directories above: maps merge, lists and single values replace.
"""


def text() -> str:
    """The whole page."""
    parts = [_HEAD]
    for path, model in _sections(HostSpec, ""):
        parts.append(_section(path, model))
    parts += [_FLEET]
    for path, model in _sections(FleetSections, ""):
        if path:
            parts.append(_section(path, model, of=" in fleet.yml"))
    parts += [_kept_out(), _rules()]
    return "\n".join(parts)


def _sections(model: type[BaseModel], path: str) -> Iterator[tuple[str, type[BaseModel]]]:
    yield path, model
    for field in model.model_fields.values():
        for kind in branches(field.annotation):
            yield from _below(kind, f"{path}.{field.alias}".lstrip("."))


def _below(kind: Any, path: str) -> Iterator[tuple[str, type[BaseModel]]]:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        yield from _sections(kind, path)
    elif get_origin(kind) in (dict, list):
        for each in branches(get_args(kind)[-1]):
            yield from _below(each, f"{path}.NAME" if get_origin(kind) is dict else f"{path}[]")


def _section(path: str, model: type[BaseModel], of: str = "") -> str:
    docs = field_docs(model)
    lines = [f"## {f'`{path}`' if path else 'Top level'}{of}", "", plain(model.__doc__ or ""), ""]
    lines += ["| key | value | default | |", "|---|---|---|---|"]
    for name, field in model.model_fields.items():
        cells = [f"`{field.alias}`", _type(field), _default(field), docs.get(name, "")]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "**required**"
    value = field.get_default(call_default_factory=True, validated_data={})
    if value is None or value is PydanticUndefined:
        return ""
    if isinstance(value, BaseModel):
        return "as there"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, list | dict):
        return f"`{', '.join(map(str, value))}`" if value else "none"
    return f"`{value}`"


def _type(field: FieldInfo) -> str:
    kinds = [*_words(Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation)]
    return " or ".join(dict.fromkeys(kind for kind in kinds if kind))


def _words(kind: Any, limits: tuple[Any, ...] = ()) -> Iterator[str]:
    origin = get_origin(kind)
    if origin is Annotated:
        first, *meta = get_args(kind)
        yield from _words(first, (*limits, *meta))
    elif origin is Literal:
        yield ", ".join(f"`{choice}`" for choice in get_args(kind))
    elif origin in (dict, list):
        inner = " or ".join(_words(get_args(kind)[-1]))
        if inner == _BELOW:
            yield "a list of such entries, below" if origin is list else "names of your own, below"
        else:
            yield f"a list: {inner}" if origin is list else f"names and values: {inner}"
    elif origin is not None:
        for each in get_args(kind):
            yield from _words(each, limits)
    elif isinstance(kind, type) and issubclass(kind, BaseModel):
        yield _BELOW
    elif kind is not type(None):
        yield _scalar(kind, limits)


def _scalar(kind: Any, limits: tuple[Any, ...]) -> str:
    bounds: dict[str, Any] = {}
    for limit in limits:
        pattern = getattr(limit, "pattern", None)
        if pattern in PATTERNS:
            return PATTERNS[pattern][0]
        for part in (limit, *getattr(limit, "metadata", ())):
            bounds |= {key: getattr(part, key) for key in ("ge", "gt", "le") if getattr(part, key, None) is not None}
    name = {int: "whole number", float: "number", bool: "`true`, `false`", str: "text"}.get(kind, "text")
    # Whether a bound is 0 or 0.0 depends on what was imported first: typing keeps one of equal annotations.
    shown = {key: f"{value:,.15g}" for key, value in bounds.items()}
    least = f" from {shown['ge']}" if "ge" in shown else f" above {shown['gt']}" if "gt" in shown else ""
    most = f" to {shown['le']}" if "le" in shown else ""
    return name + least + most


def _kept_out() -> str:
    lines = ["## Kept out on purpose", "", "Flags of the engine that open the machine have no key:", ""]
    lines += [f"- `{flag}` {why}" for flag, why in sorted(OPENING.items())]
    return "\n".join([*lines, "", "Who must have one writes it under `unsafe-args`; every check then shows it.", ""])


def _rules() -> str:
    lines = ["## What `check` looks at beyond single keys", ""]
    lines += [f"- {plain(rule.__doc__ or '')}" for rule in RULES]
    return "\n".join([*lines, ""])


def main(file: Path = FILE) -> None:
    """Write the page."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
