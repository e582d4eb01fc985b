"""Changing values inside a YAML file and nothing else: comments, order and layout stay as they are."""

from __future__ import annotations

import difflib
import os
import re
import secrets
from collections.abc import Mapping
from pathlib import Path

import yaml

from llamarig.errors import RigError
from llamarig.spec.tree import Loc

Value = str | int

_NUMERIC = re.compile(r"[0-9.+-]+(e[0-9+-]+)?", re.IGNORECASE)
"""Text that some YAML reader could take for a number."""


def locate(text: str, path: Path) -> yaml.Node:
    """The nodes of a document, with their places in ``text``."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise RigError("the file is not YAML", str(path), str(error), "run `llamarig check`") from error
    if node is None:
        raise RigError("the file is empty", str(path))
    return node


def node_at(node: yaml.Node, loc: Loc) -> yaml.ScalarNode | None:
    """The scalar at ``loc``, or None where the document has none."""
    for step in loc:
        below: yaml.Node | None = None
        if isinstance(node, yaml.MappingNode):
            below = next((value for key, value in node.value if key.value == step), None)
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            below = node.value[step]
        if below is None:
            return None
        node = below
    return node if isinstance(node, yaml.ScalarNode) else None


def _written(value: Value, style: str | None) -> str:
    text = str(value)
    if isinstance(value, int):
        return text
    if style in ("'", '"'):
        return f"{style}{text}{style}"
    return f'"{text}"' if _NUMERIC.fullmatch(text) else text


def _span(text: str, node: yaml.ScalarNode) -> tuple[int, int]:
    """Where the value itself stands: behind its anchor or tag, with its quotes."""
    start, end = node.start_mark.index, node.end_mark.index
    if node.style is None:
        return max(start, end - len(node.value)), end
    return text.index(node.style, start, end), end


def replaced(text: str, path: Path, values: Mapping[Loc, Value]) -> str:
    """``text`` with each scalar at a location replaced; everything else byte for byte the same.

    Raises :class:`RigError` where a location holds no plain or quoted scalar.
    """
    root = locate(text, path)
    spans: dict[tuple[int, int], str] = {}
    for loc, value in values.items():
        node = node_at(root, loc)
        if node is None or node.style not in (None, "'", '"'):
            raise RigError("cannot rewrite this value in place", f"{path}: {dotted(loc)}", fix=f"write {value} there")
        spans[_span(text, node)] = _written(value, node.style)
    for (start, end), written in sorted(spans.items(), reverse=True):
        text = text[:start] + written + text[end:]
    _same_but(root, locate(text, path), values, path)
    return text


def _same_but(before: yaml.Node, after: yaml.Node, values: Mapping[Loc, Value], path: Path) -> None:
    """Read the result again: what was not meant to change must not have."""
    old, new = _scalars(before), _scalars(after)
    changed = {loc for loc in old.keys() | new.keys() if old.get(loc) != new.get(loc)}
    # One anchored value may stand at several places; every changed place must have got a value that was asked for.
    if {new.get(loc) for loc in changed} - {str(value) for value in values.values()}:
        raise RigError("the file cannot be rewritten safely", str(path), fix="write the values by hand")


def _scalars(node: yaml.Node, loc: Loc = ()) -> dict[Loc, str]:
    if isinstance(node, yaml.MappingNode):
        return {
            place: text for key, value in node.value for place, text in _scalars(value, (*loc, str(key.value))).items()
        }
    if isinstance(node, yaml.SequenceNode):
        return {
            place: text for at, value in enumerate(node.value) for place, text in _scalars(value, (*loc, at)).items()
        }
    return {loc: str(node.value)}


def dotted(loc: Loc) -> str:
    """A location as people write it: ``models.qwen.shards[0].sha256``."""
    text = ""
    for step in loc:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def unified(path: str, before: str, after: str) -> str:
    """The change of one file as a unified diff."""
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{path}", f"b/{path}"
    )
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file in one step: temporary file beside it, fsync, rename; its mode stays."""
    target = path.resolve()
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o644
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(mode)
        temporary.replace(target)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise RigError("the file cannot be written", str(path), error.strerror or str(error)) from error
