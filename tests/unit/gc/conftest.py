"""A host's trees for the tests of what goes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.gc_tree import Tree, made


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    return made(tmp_path, monkeypatch)
