"""Imports point down one list, what runs on a host stands alone, dependencies are those that are imported."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ORDER = ("cli", "fleet", "prove", "converge", "compare", "render", "plan", "speed", "memory", "gguf", "spec", "catalog")
"""docs/decisions/0009-the-catalog-lies-below-the-spec.md; the modules beside them import none of these."""
ON_HOST = ("plugins/modules/", "plugins/module_utils/")
DISTRIBUTIONS = packages_distributions()
COMES_ALONG = {"pydantic-core": "pydantic"}
"""A distribution that another one pins to exactly one version."""


def imported(source: str) -> Iterator[tuple[int, str]]:
    """Line and absolute name of every import, those inside functions and for type checkers too."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide where they point"
            yield node.lineno, node.module or ""
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def upwards(path: str, source: str) -> list[str]:
    """Imports of a file below llamarig/ that point up the list."""
    own = path.split("/")[1]
    allowed = ORDER[ORDER.index(own) :] if own in ORDER else ()
    return [
        f"{path}:{line}: {name}"
        for line, name in imported(source)
        if name.startswith("llamarig.") and (part := name.split(".")[1]) in ORDER and part not in allowed
    ]


def beyond_the_library(path: str, source: str) -> list[str]:
    """Imports of a module for the host that only the controller has."""
    return [
        f"{path}:{line}: {name}"
        for line, name in imported(source)
        if not name.startswith("ansible.module_utils") and name.split(".")[0] not in sys.stdlib_module_names
    ]


def distributions(source: str) -> set[str]:
    """The third-party distributions that a file imports, by their normalised names."""
    tops = {name.split(".")[0] for _, name in imported(source)} - sys.stdlib_module_names - {"llamarig", "tests"}
    found = {re.sub(r"[-_.]+", "-", DISTRIBUTIONS[top][0]).lower() for top in tops}
    return {COMES_ALONG.get(name, name) for name in found}


def tracked(*places: str) -> dict[str, str]:
    listed = subprocess.run(["git", "ls-files", *places], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = [path for path in listed.splitlines() if path.endswith(".py") and (ROOT / path).is_file()]
    return {path: (ROOT / path).read_text(encoding="utf-8") for path in paths}


def declared() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = [*project["dependencies"], *project["optional-dependencies"]["container"]]
    return {re.split(r"[<>=!~\[; ]", line)[0].lower() for line in lines}


def test_imports_point_down_the_list() -> None:
    files = tracked("llamarig")
    assert {path.split("/")[1] for path in files} >= set(ORDER)
    assert [found for path, source in files.items() for found in upwards(path, source)] == []


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("llamarig/spec/x.py", "from llamarig.plan.types import Plan"),
        ("llamarig/catalog/x.py", "from llamarig import spec"),
        ("llamarig/compare/x.py", "def f():\n    import llamarig.converge.run"),
        ("llamarig/errors.py", "from llamarig.catalog.data import read"),
    ],
)
def test_an_import_that_points_up_is_caught(path: str, source: str) -> None:
    assert len(upwards(path, source)) >= 1


def test_an_import_that_points_down_passes() -> None:
    assert upwards("llamarig/plan/x.py", "from llamarig.memory import estimate\nfrom llamarig.errors import E") == []


def test_what_runs_on_a_host_needs_nothing_but_the_standard_library() -> None:
    files = tracked(*ON_HOST)
    assert "plugins/modules/rig_observe.py" in files
    assert [found for path, source in files.items() for found in beyond_the_library(path, source)] == []


def test_a_module_that_needs_more_is_caught() -> None:
    assert beyond_the_library("plugins/modules/x.py", "import yaml") == ["plugins/modules/x.py:1: yaml"]


def test_dependencies_are_those_that_are_imported() -> None:
    files = tracked("llamarig", "plugins")
    assert set().union(*(distributions(source) for source in files.values())) == declared()


def test_a_dependency_that_nothing_declares_is_seen() -> None:
    assert distributions("import gguf.constants\nimport pydantic_core") - declared() == {"gguf"}
