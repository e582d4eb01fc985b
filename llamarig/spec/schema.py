"""The JSON Schemas that editors complete and check specs with; ``python -m llamarig.spec.schema`` writes them."""

from __future__ import annotations

import copy
import json
import sys
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from llamarig.spec.docs import field_docs, plain
from llamarig.spec.fleet_file import SECTIONS, FleetSections
from llamarig.spec.host import HostSpec
from llamarig.spec.walk import branches, models_below

DIRECTORY = Path("schema")
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def host_schema() -> dict[str, Any]:
    """Of a whole host spec in one file."""
    return {"$schema": _DIALECT, **_described(HostSpec), "title": "llamarig host spec"}


def _described(model: type[BaseModel]) -> dict[str, Any]:
    """Of a model and those in it, with what their docstrings say."""
    schema = model.model_json_schema(by_alias=True)
    models = {each.__name__: each for each in models_below(model)}
    _describe(schema, model)
    for name, definition in schema.get("$defs", {}).items():
        if name in models:
            _describe(definition, models[name])
    return schema


def fleet_host_schema() -> dict[str, Any]:
    """Of a host spec below a fleet.yml: what must be there may come from the defaults."""
    schema = _without_required(host_schema())
    schema["required"] = ["host"]
    return schema | {"title": "llamarig host spec below a fleet.yml"}


def fleet_schema() -> dict[str, Any]:
    """Of a fleet.yml: the defaults that hosts share."""
    defaults = _without_required(host_schema())
    defaults["properties"].pop("host")
    shared = {key: defaults[key] for key in ("type", "properties", "additionalProperties")}
    sections = _sections_schema()
    return {
        "$schema": _DIALECT,
        "title": "llamarig fleet defaults",
        "description": "What the hosts in this directory and below have in common.",
        "type": "object",
        "additionalProperties": False,
        "required": ["schema-version"],
        "anyOf": [{"required": [key]} for key in ("defaults", *SECTIONS)],
        "properties": {
            "schema-version": {"const": 1, "title": "Schema-Version"},
            "defaults": shared | {"description": "Keys of a host spec; maps merge under each host, lists replace."},
            **sections["properties"],
        },
        "$defs": defaults["$defs"] | sections["$defs"],
    }


def _sections_schema() -> dict[str, Any]:
    """Of what stands beside the defaults; any part of a section may come from a directory above."""
    schema = _described(FleetSections)
    for definition in schema["$defs"].values():
        definition.pop("required", None)
    return schema


def _describe(schema: dict[str, Any], model: type[BaseModel]) -> None:
    schema["description"] = plain(model.__doc__ or "")
    docs = field_docs(model)
    for name, field in model.model_fields.items():
        entry = schema["properties"].get(str(field.alias))
        if entry is not None and name in docs:
            entry["description"] = docs[name]
        if entry is not None:
            entry.pop("title", None)


def _without_required(schema: dict[str, Any]) -> dict[str, Any]:
    """Only whole sections may be incomplete; what stands in a list cannot be merged and stays whole."""
    schema = copy.deepcopy(schema)
    listed = {model.__name__ for model in _listed()}
    schema.pop("required", None)
    for name, definition in schema["$defs"].items():
        if name not in listed:
            definition.pop("required", None)
    return schema


def _listed() -> list[type[BaseModel]]:
    """Models that stand in lists."""
    found = []
    for model in models_below(HostSpec):
        for field in model.model_fields.values():
            for kind in branches(field.annotation):
                if getattr(kind, "__origin__", None) is list:
                    found += [each for each in branches(kind.__args__[0]) if isinstance(each, type)]
    return [each for each in found if issubclass(each, BaseModel)]


def files() -> dict[str, str]:
    """Each schema's file name and text."""
    made = {
        "llamarig-host.schema.json": host_schema(),
        "llamarig-fleet-host.schema.json": fleet_host_schema(),
        "llamarig-fleet.schema.json": fleet_schema(),
    }
    return {name: json.dumps(schema, indent=2, ensure_ascii=False) + "\n" for name, schema in made.items()}


def main(directory: Path = DIRECTORY) -> None:
    """Write all schemas below ``directory``."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in files().items():
        (directory / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
