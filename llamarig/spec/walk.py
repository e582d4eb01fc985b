"""Which keys a spec may have at a place: a walk over the models' types."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

from llamarig.spec.fleet_file import FleetSections
from llamarig.spec.host import HostSpec
from llamarig.spec.tree import Loc


def branches(annotation: Any) -> Iterator[Any]:
    """The plain types behind Optional, Union and Annotated."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from branches(get_args(annotation)[0])
    elif origin in (Union, UnionType):
        for each in get_args(annotation):
            yield from branches(each)
    else:
        yield annotation


def _models_at(loc: Loc) -> list[type[BaseModel]]:
    types: list[Any] = [HostSpec]
    for number, step in enumerate(loc):
        below: list[Any] = []
        for kind in types:
            below.extend(_below(kind, step))
        if number == 0 and not below:
            # No section of a host; one of a fleet.yml, perhaps.
            below.extend(_below(FleetSections, step))
        types = [branch for each in below for branch in branches(each)]
    return [kind for kind in types if isinstance(kind, type) and issubclass(kind, BaseModel)]


def _below(kind: Any, step: str | int) -> list[Any]:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return [field.annotation for field in kind.model_fields.values() if field.alias == step]
    if get_origin(kind) is dict:
        return [get_args(kind)[1]]
    if get_origin(kind) is list:
        return [get_args(kind)[0]]
    return []


@lru_cache(maxsize=512)
def keys_at(loc: Loc) -> list[str]:
    """The keys of the mapping at ``loc``; empty where the user names the keys, or there is no mapping."""
    return [str(field.alias) for model in _models_at(loc) for field in model.model_fields.values()]


def is_named(loc: Loc) -> bool:
    """Whether the keys at ``loc`` are names that the user gives (cards, models, services)."""
    return not keys_at(loc)


@cache
def places() -> dict[str, tuple[str, ...]]:
    """Every key of a spec and the sections in which it may stand, as ``services.NAME.listen``."""
    found: dict[str, list[str]] = {}
    _collect(HostSpec, "", found)
    return {key: tuple(dict.fromkeys(where)) for key, where in found.items()}


def _collect(model: type[BaseModel], prefix: str, found: dict[str, list[str]]) -> None:
    for field in model.model_fields.values():
        key = str(field.alias)
        found.setdefault(key, []).append(prefix.removesuffix("."))
        for kind in branches(field.annotation):
            _collect_below(kind, f"{prefix}{key}.", found)


def _collect_below(kind: Any, prefix: str, found: dict[str, list[str]]) -> None:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        _collect(kind, prefix, found)
    elif get_origin(kind) in (dict, list):
        mapping = get_origin(kind) is dict
        for each in branches(get_args(kind)[1 if mapping else 0]):
            _collect_below(each, f"{prefix}NAME." if mapping else prefix, found)


def models_below(model: type[BaseModel]) -> list[type[BaseModel]]:
    """A model and all models in it, each once, in the order of the keys."""
    found: list[type[BaseModel]] = []
    _gather(model, found)
    return found


def _gather(kind: Any, found: list[type[BaseModel]]) -> None:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        if kind not in found:
            found.append(kind)
            for field in kind.model_fields.values():
                for each in branches(field.annotation):
                    _gather(each, found)
    elif get_origin(kind) in (dict, list):
        for each in branches(get_args(kind)[-1]):
            _gather(each, found)
