"""A source archive becomes a tree: only the wanted directory, with plain modes and links that stay inside."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ansible.module_utils.rig_tree import tree_sha256
from ansible.module_utils.rig_unpack import unpack

from tests.support.artifacts import archives


def _unpack(archive: Path, dest: Path, *rest: Any, **more: Any) -> None:
    with archive.open("rb") as file:
        unpack(file, dest, *rest, **more)


def _unpacked(tmp_path: Path, subdir: str = "vendor/engine") -> Path:
    dest = tmp_path / "tree"
    dest.mkdir()
    _unpack(archives.good(tmp_path / "a.tar.gz"), dest, subdir)
    return dest


def test_only_the_wanted_directory_comes_out(tmp_path: Path) -> None:
    tree = _unpacked(tmp_path)
    found = sorted(str(path.relative_to(tree)) for path in tree.rglob("*") if not path.is_dir())
    assert found == [".git", "run.sh", "src/alias.cpp", "src/main.cpp"]


def test_without_a_subdirectory_the_top_one_is_the_tree(tmp_path: Path) -> None:
    assert (_unpacked(tmp_path, "") / "setup.py").is_file()


def test_modes_are_plain_and_links_lead_inside(tmp_path: Path) -> None:
    tree = _unpacked(tmp_path)
    assert (tree / "run.sh").stat().st_mode & 0o7777 == 0o755
    assert (tree / "src/main.cpp").stat().st_mode & 0o7777 == 0o644
    assert (tree / "src/alias.cpp").resolve() == tree / "src/main.cpp"


def test_the_tree_hash_is_of_path_mode_and_content_alone(tmp_path: Path) -> None:
    tree = _unpacked(tmp_path)
    before = tree_sha256(tree)
    main = tree / "src/main.cpp"
    os.utime(main, (1, 1))
    assert tree_sha256(tree) == before
    for change in (lambda: main.chmod(0o755), lambda: main.write_text("other"), lambda: main.rename(tree / "b.cpp")):
        change()
        after = tree_sha256(tree)
        assert after != before
        before = after


def test_the_tree_hash_tells_a_link_from_a_file(tmp_path: Path) -> None:
    tree = _unpacked(tmp_path)
    before = tree_sha256(tree)
    alias = tree / "src/alias.cpp"
    alias.unlink()
    alias.write_text("main.cpp")
    assert tree_sha256(tree) != before
