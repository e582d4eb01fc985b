"""The docstrings that stand below a model's fields, read from the source: they are the schema's descriptions."""

from __future__ import annotations

import ast
import inspect
import re
from functools import cache
from pathlib import Path

from pydantic import BaseModel

_ROLE = re.compile(r":[a-z:]+:`~?([^`]*)`")


@cache
def field_docs(model: type[BaseModel]) -> dict[str, str]:
    """Field name -> what its docstring says, those of base models included."""
    found: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if base is not BaseModel and isinstance(base, type) and issubclass(base, BaseModel):
            found |= _module_docs(base.__module__, inspect.getsourcefile(base) or "").get(base.__name__, {})
    return found


@cache
def _module_docs(_name: str, path: str) -> dict[str, dict[str, str]]:
    if not path:
        return {}
    tree = ast.parse(Path(path).read_text(encoding="utf-8"))
    return {node.name: _class_docs(node) for node in tree.body if isinstance(node, ast.ClassDef)}


def _class_docs(node: ast.ClassDef) -> dict[str, str]:
    docs: dict[str, str] = {}
    for field, text in zip(node.body, node.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr):
            value = text.value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                docs[field.target.id] = plain(value.value)
    return docs


def plain(text: str) -> str:
    """A docstring as one paragraph with simple back quotes."""
    text = _ROLE.sub(r"`\1`", inspect.cleandoc(text)).replace("``", "`")
    return " ".join(text.split())
