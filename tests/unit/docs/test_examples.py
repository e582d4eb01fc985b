"""Specs and outputs that the pages show are true."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from llamarig.cli.main import VERBS
from llamarig.spec.load import load_files
from llamarig.spec.read_yaml import read_bytes
from llamarig.spec.validate import validate

ROOT = Path(__file__).resolve().parents[3]
BLOCK = re.compile(r"^(?P<indent> *)```yaml[^\n]*\n(?P<text>.*?)^ *```$", re.MULTILINE | re.DOTALL)
PAGES = [ROOT / "README.md", ROOT / "docs/tutorial.md", *sorted((ROOT / "docs/how-to").glob("*.md"))]


def blocks(page: Path) -> list[str]:
    """The YAML of a page, without the indentation of the list that it stands in."""
    found = BLOCK.finditer(page.read_text(encoding="utf-8"))
    return [re.sub(rf"^{match['indent']}", "", match["text"], flags=re.MULTILINE) for match in found]


def test_the_spec_of_the_readme_is_valid_and_pinned() -> None:
    [text] = blocks(ROOT / "README.md")
    tree, problems = read_bytes(text.encode(), Path("box.yml"))
    assert tree is not None
    assert problems == []
    found = validate(tree, ROOT)
    assert (found.errors, found.warnings) == ([], [])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_fragments_of_specs_are_yaml_and_their_keys_exist(page: Path, tmp_path: Path) -> None:
    document = yaml.safe_load((ROOT / "inventory/demo.yml").read_text())
    for text in blocks(page):
        fragment = yaml.safe_load(text)
        if "listen" in fragment:
            fragment = {"services": {"chat": fragment}}
        spec = tmp_path / "demo.yml"
        spec.write_text(yaml.safe_dump(laid_on(document, fragment)))
        [host] = load_files(tmp_path, [spec], tmp_path).hosts
        unknown = [error.message for error in host.errors if "is no key" in error.message or "must be" in error.message]
        assert unknown == []


def laid_on(below: dict[str, object], above: dict[str, object]) -> dict[str, object]:
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        both = isinstance(old, dict) and isinstance(value, dict)
        merged[key] = laid_on(old, value) if both else value  # type: ignore[arg-type] # both are mappings here
    return merged


def test_the_tutorial_shows_the_plan_that_the_command_prints() -> None:
    command = [sys.executable, "-m", "llamarig.cli.main", "-C", str(ROOT), "plan", "demo"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    table = printed[printed.index("  MiB") : printed.index("note")]
    assert table in (ROOT / "docs/tutorial.md").read_text()


def test_the_readme_names_every_verb_and_none_twice() -> None:
    text = (ROOT / "README.md").read_text()
    built = text[text.index("| verb |") : text.index("Not built yet:")]
    unbuilt = re.findall(r"`([^`]+)`", text[text.index("Not built yet:") :])[0].split()
    for verb in VERBS:
        assert f"| `{verb}" in built, verb
    assert set(unbuilt) & set(VERBS) == set()


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) < 150
