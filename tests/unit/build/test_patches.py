"""Patches on a clean tree: exact ones apply, in order, and say what they touch."""

from __future__ import annotations

from pathlib import Path

from ansible.module_utils.rig_patch import patched_paths
from ansible.module_utils.rig_tree import apply_patch

from tests.support.artifacts import patches


def test_an_exact_patch_applies(tmp_path: Path) -> None:
    tree = patches.tree(tmp_path)
    apply_patch(tree, patches.EXACT.encode())
    assert "return 7;" in (tree / "src/main.cpp").read_text()
    assert sorted(path.name for path in tree.rglob("*") if path.is_file()) == ["CMakeLists.txt", "main.cpp"]


def test_patches_build_on_each_other(tmp_path: Path) -> None:
    tree = patches.tree(tmp_path)
    apply_patch(tree, patches.EXACT.encode())
    apply_patch(tree, patches.SECOND.encode())
    assert "return 8;" in (tree / "src/main.cpp").read_text()


def test_a_new_file_is_made(tmp_path: Path) -> None:
    tree = patches.tree(tmp_path)
    apply_patch(tree, patches.NEW_FILE.encode())
    assert (tree / "src/new.cpp").read_text() == "int one = 1;\n"


def test_touched_paths_are_named(tmp_path: Path) -> None:
    assert patched_paths(patches.EXACT) == {"src/main.cpp"}
    assert patched_paths(patches.NEW_FILE) == {"src/new.cpp"}
