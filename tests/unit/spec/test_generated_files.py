"""Schemas and reference are those that the models give now, and the inventory obeys them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from llamarig.spec import reference, schema
from llamarig.spec.load import load_project
from llamarig.spec.read_yaml import read_file
from llamarig.spec.walk import places

ROOT = Path(__file__).resolve().parents[3]
SPECS = sorted((ROOT / "inventory").rglob("*.yml"))


@pytest.mark.parametrize(("name", "text"), sorted(schema.files().items()))
def test_a_committed_schema_is_fresh(name: str, text: str) -> None:
    assert (ROOT / "schema" / name).read_text() == text, "run: python -m llamarig.spec.schema"


def test_no_other_schema_lies_there() -> None:
    assert {path.name for path in (ROOT / "schema").iterdir()} == set(schema.files())


def test_the_reference_is_fresh_and_names_every_key() -> None:
    text = (ROOT / "docs/reference/spec.md").read_text()
    assert text == reference.text(), "run: python -m llamarig.spec.reference"
    for key in places():
        assert f"| `{key}` |" in text


def test_every_key_is_described() -> None:
    bare = [line for line in reference.text().splitlines() if line.startswith("| `") and line.endswith("|  |")]
    assert bare == []


def test_the_writers_write_what_is_compared(tmp_path: Path) -> None:
    schema.main(tmp_path / "schema")
    reference.main(tmp_path / "docs/spec.md")
    assert {path.name: path.read_text() for path in (tmp_path / "schema").iterdir()} == schema.files()
    assert (tmp_path / "docs/spec.md").read_text() == reference.text()


def schema_of(path: Path) -> Any:
    if path.name == "fleet.yml":
        return schema.fleet_schema()
    return schema.fleet_host_schema() if (path.parent / "fleet.yml").exists() else schema.host_schema()


@pytest.mark.parametrize("path", SPECS, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_inventory_obeys_its_schema_and_names_it(path: Path) -> None:
    tree, problems = read_file(path)
    assert problems == []
    assert tree is not None
    jsonschema.Draft202012Validator(schema_of(path)).validate(tree.data())
    first = path.read_text().splitlines()[0]
    if "$schema=" in first:
        named = (path.parent / first.partition("$schema=")[2]).resolve()
        assert json.loads(named.read_text())["title"] == schema_of(path)["title"]
    else:
        assert path.name == "demo.yml"


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"hosst": "x"}, "Additional properties"),
        ({"engine": {"commit": 1}}, "is not of type"),
        ({"models": {}}, "should be non-empty"),
    ],
)
def test_the_schema_refuses_what_check_refuses(change: dict[str, Any], place: str) -> None:
    tree, _ = read_file(ROOT / "inventory/demo.yml")
    assert tree is not None
    errors = list(jsonschema.Draft202012Validator(schema.host_schema()).iter_errors(tree.data() | change))
    assert any(place in error.message for error in errors), [error.message for error in errors]


def test_every_reference_spec_passes_check() -> None:
    project = load_project(ROOT)
    assert project.errors == []
    assert [error for host in project.hosts for error in host.errors] == []
    wanted = {"demo", "dual-gpu-256k", "rtx-5090", "rtx-4090", "rtx-5080", "rtx-5070-ti", "rtx-5070", "one-4090-125b"}
    wanted.add("one-4090-125b-claims")
    assert wanted | {"studio-1", "studio-2", "lab-1"} == {host.host for host in project.hosts}


def test_the_reference_stack_is_described_as_published() -> None:
    [host] = load_project(ROOT).valid(["dual-gpu-256k"])
    assert host.spec is not None
    chat = host.spec.services["chat"]
    assert chat.speculation is not None
    assert (chat.context, chat.kv_cache.k, chat.kv_cache.v, chat.ubatch, chat.batch) == (
        262_144,
        "q4_0",
        "q4_0",
        256,
        512,
    )
    assert (chat.speculation.n_max, chat.speculation.kv_cache, chat.speculation.ngram_default) == (8, "f16", True)
    assert chat.accept_margin is not None
    assert [patch.pr for patch in host.spec.engine.patches] == [26001, 26048, 26705, 27173, 24891, 25635]
    assert host.spec.models["qwen"].size == 17_125_207_136
