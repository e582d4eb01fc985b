"""The wanted state back from its JSON form, as Ansible's variables carry it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, cast, get_args, get_origin, get_type_hints

from llamarig.errors import RigError
from llamarig.render.wanted import Wanted


def wanted_from_json(data: Mapping[str, Any]) -> Wanted:
    """The inverse of :meth:`Wanted.to_json`; RigError when ``data`` is not such a form."""
    try:
        loaded = _load(Wanted, data, "wanted")
    except (KeyError, TypeError, ValueError) as error:
        raise RigError(
            what="the wanted state is malformed",
            why=str(error),
            fix="let llamarig render it; it is not written by hand",
        ) from error
    return cast(Wanted, loaded)


def _load(kind: Any, data: Any, where: str) -> Any:
    origin = get_origin(kind)
    if is_dataclass(kind) and isinstance(kind, type):
        return _load_dataclass(kind, data, where)
    if origin is tuple:
        return _load_tuple(get_args(kind), data, where)
    if origin is UnionType:
        inner = next(each for each in get_args(kind) if each is not NoneType)
        return None if data is None else _load(inner, data, where)
    if origin is dict:
        return dict(_expect(Mapping, data, where))
    if origin is Literal or kind is Any:
        return data
    return float(data) if kind is float else _expect(kind, data, where)


def _load_dataclass(kind: type, data: Any, where: str) -> Any:
    given = _expect(Mapping, data, where)
    hints = get_type_hints(kind)
    names = [each.name for each in fields(kind) if each.name in given]
    return kind(**{name: _load(hints[name], given[name], f"{where}.{name}") for name in names})


def _load_tuple(kinds: tuple[Any, ...], data: Any, where: str) -> tuple[Any, ...]:
    items = _expect(list | tuple, data, where)
    each = [kinds[0]] * len(items) if kinds[-1] is Ellipsis else list(kinds)
    return tuple(_load(inner, item, f"{where}[{at}]") for at, (inner, item) in enumerate(zip(each, items, strict=True)))


def _expect(kind: Any, data: Any, where: str) -> Any:
    if not isinstance(data, kind):
        raise TypeError(f"{where} is a {type(data).__name__}")
    return data
