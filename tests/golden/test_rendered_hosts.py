from __future__ import annotations

from pathlib import Path

import pytest

from llamarig.render.tree import write_tree
from tests.golden.cases import HERE, SPECS, wanted_of

UPDATE = "rendering changed; if that is meant: python tests/golden/update.py, and read the difference"


def content(root: Path) -> dict[str, tuple[str, bool]]:
    """Every file below ``root``: its text, and whether it may be executed (git keeps no more of the mode)."""
    return {
        str(path.relative_to(root)): (path.read_text(encoding="utf-8"), bool(path.stat().st_mode & 0o100))
        for path in root.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("host", SPECS)
def test_rendered_files_are_the_golden_ones(host: str, tmp_path: Path) -> None:
    write_tree(wanted_of(host), tmp_path)
    rendered, golden = content(tmp_path), content(HERE / "hosts" / host)
    assert sorted(rendered) == sorted(golden), UPDATE
    for path, expected in golden.items():
        assert rendered[path] == expected, f"{path}: {UPDATE}"


@pytest.mark.parametrize("host", SPECS)
def test_rendering_twice_gives_the_same(host: str) -> None:
    assert wanted_of(host).to_json() == wanted_of(host).to_json()
