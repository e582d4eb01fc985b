"""The house rules hold in every tracked file, and each rule catches a planted breach."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("house_rules", Path(__file__).with_name("house_rules.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["house_rules"] = module
    spec.loader.exec_module(module)
    return module


house_rules = load()


def test_every_tracked_file_keeps_the_house_rules() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found = []
    for path in listed.splitlines():
        if not (ROOT / path).is_file():
            continue
        try:
            content = (ROOT / path).read_text()
        except UnicodeDecodeError:
            continue
        found += [str(breach) for breach in house_rules.breaches(path, content)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("path", "line", "rule"),
    [
        ("roles/base/tasks/main.yml", "url: http://deb." + "debian.org/debian", "registry"),
        ("docs/tutorial.md", "https://py" + "pi.org/simple", "registry"),
        ("llamarig/spec/base.py", '"https://hugging' + 'face.co/x"', "upstream address"),
        ("roles/models/tasks/main.yml", "url: https://git" + "hub.com/x/y", "upstream address"),
        ("llamarig/x.py", "import os  # no" + "qa: F401", "without a reason"),
        ("llamarig/x.py", "x = y  # type: ig" + "nore[attr-defined]", "without a reason"),
        ("llamarig/x.py", "\n" * 451, "longer than"),
    ],
)
def test_a_planted_breach_is_caught(path: str, line: str, rule: str) -> None:
    found = list(house_rules.breaches(path, line))
    assert len(found) == 1
    assert rule in found[0].rule


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (house_rules.UPSTREAM_FILE, "hub: https://hugging" + "face.co"),
        ("llamarig/x.py", "import os  # no" + "qa: F401 - re-exported for plugins of ours"),
        ("llamarig/x.py", '"""Nothing to see."""'),
    ],
)
def test_what_is_allowed_passes(path: str, line: str) -> None:
    assert list(house_rules.breaches(path, line)) == []
