"""Patches that do not fit exactly, reach outside, or change the build unasked: each is refused in clear words."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible.module_utils.rig_tree import apply_patch
from ansible.module_utils.rig_unpack import RefusedError

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
        "outside the tree",
    ),
    "nothing": ("just words\n", "names no file"),
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
