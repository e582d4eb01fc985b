"""The demo script: one host a checkout, its age in words, and the memory that its plan counts with."""

from __future__ import annotations

import hashlib
import importlib.util
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]
NOW = datetime(2026, 11, 29, 18, 0, 0, tzinfo=UTC)


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("loaded_demo", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


demo = load(ROOT / "scripts/demo.py")


def test_the_lab_is_named_by_the_checkout() -> None:
    assert "demo-" + hashlib.sha256(str(ROOT).encode()).hexdigest()[:8] == demo.LAB


def test_another_checkout_has_another_lab(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    other = tmp_path / "scripts" / "demo.py"
    other.write_text((ROOT / "scripts/demo.py").read_text())
    assert load(other).LAB != demo.LAB


@pytest.mark.parametrize(
    ("created", "words"),
    [
        ("2026-11-29T17:59:31.123456789Z", "0 minutes ago"),
        ("2026-11-29T17:58:59Z", "1 minute ago"),
        ("2026-11-29T17:12:00Z", "48 minutes ago"),
        ("2026-11-29T15:12:00Z", "2 hours ago"),
        ("2026-11-27T15:12:00Z", "2 days ago"),
        ("2026-11-29T19:00:00Z", "0 minutes ago"),
        ("", "earlier"),
    ],
)
def test_the_age_of_a_host_in_words(created: str, words: str) -> None:
    assert demo.age(created, NOW) == words


def test_memory_is_read_in_mib() -> None:
    assert demo.total_mib("MemTotal:       24683520 kB\nMemFree: 1 kB\n") == 24105
    assert demo.total_mib("MemFree: 1 kB\nMemTotal:\n") is None
