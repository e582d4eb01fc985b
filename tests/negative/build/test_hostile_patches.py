"""Patches that do not fit exactly, reach outside, or change the build unasked: each is refused in clear words."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible.module_utils.rig_patch import patched_paths
from ansible.module_utils.rig_tree import apply_patch
from ansible.module_utils.rig_unpack import RefusedError

from llamarig.converge.locking.patch_text import read_patch
from llamarig.errors import RigError
from tests.support.artifacts import patches

HOSTILE = {
    "fuzz": (patches.FUZZY, r"does not apply cleanly:\n(.|\n)*Hunk #1 FAILED"),
    "one hunk fails": (patches.HALF, r"does not apply cleanly:\n(.|\n)*FAILED"),
    "out of the tree": (patches.new_file_at("../../outside.cpp"), "outside the tree"),
    "absolute path": (patches.plain_at("/etc/x"), "outside the tree"),
    "git's own directory": (patches.new_file_at(".git/hooks/post-checkout"), "outside the tree"),
    "quoted path": (patches.NEW_FILE.replace("b/src/new.cpp", '"b/src/new.cpp"'), "outside the tree|as git writes"),
    "no prefix": (patches.NEW_FILE.replace("+++ b/", "+++ "), "does not begin with a/ or b/"),
    "link": (patches.LINK, "makes a link"),
    "setuid file": (patches.NEW_FILE.replace("100644", "104755"), "special file"),
    "binary": (patches.BINARY, "binary content"),
    "rename out": (
        "diff --git a/src/main.cpp b/x.cpp\nsimilarity index 100%\nrename from src/main.cpp\nrename to ../x.cpp\n",
        "it renames",
    ),
    "nothing": ("just words\n", "belongs to no change"),
    "empty": ("", "names no file"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_patch_is_refused(name: str, tmp_path: Path) -> None:
    text, says = HOSTILE[name]
    tree = patches.tree(tmp_path)
    with pytest.raises(RefusedError, match=says):
        apply_patch(tree, text.encode())
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == [
        "CMakeLists.txt",
        "main.cpp",
    ]


def test_a_patch_that_is_applied_already_is_refused(tmp_path: Path) -> None:
    tree = patches.tree(tmp_path)
    patch = patches.EXACT.encode()
    apply_patch(tree, patch)
    with pytest.raises(RefusedError, match="does not apply cleanly"):
        apply_patch(tree, patch)


@pytest.mark.parametrize("name", patches.HIDDEN)
def test_a_second_diff_in_other_text_is_refused_on_both_sides(name: str, tmp_path: Path) -> None:
    tree = patches.tree(tmp_path)
    data = patches.HIDDEN[name].encode()
    with pytest.raises(RefusedError, match=r"belongs to no change|as one|as git writes|outside the tree"):
        apply_patch(tree, data)
    assert (tree / "CMakeLists.txt").read_text() == "project(engine)\n"
    assert "return 0" in (tree / "src/main.cpp").read_text()
    with pytest.raises(RigError):
        read_patch(data, name)


@pytest.mark.parametrize("name", ["EXACT", "NEW_FILE", "BUILD", "SECOND"])
def test_both_sides_name_the_same_files(name: str) -> None:
    text = getattr(patches, name)
    assert {change.path for change in read_patch(text.encode(), name).files} == patched_paths(text)


def test_a_file_that_changes_without_being_named_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Should `patch` ever see more than the reviewer, the trees before and after tell."""
    tree = patches.tree(tmp_path)
    monkeypatch.setattr("ansible.module_utils.rig_tree.patched_paths", lambda _: {"src/main.cpp"})
    with pytest.raises(RefusedError, match=r"does not name: CMakeLists\.txt"):
        apply_patch(tree, patches.HIDDEN["spaces"].encode())


def test_a_named_file_that_stays_as_it_was_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = patches.tree(tmp_path)
    monkeypatch.setattr("ansible.module_utils.rig_tree.patched_paths", lambda _: {"src/main.cpp", "other"})
    with pytest.raises(RefusedError, match="did not change: other"):
        apply_patch(tree, patches.EXACT.encode())
