"""Patches that try to look like something else are refused by the reader."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamarig.converge.locking.patch_text import read_patch
from llamarig.errors import RigError

BODY = "@@ -1 +1 @@\n-one\n+two\n"


def patch(old: str, new: str | None = None, extra: str = "") -> bytes:
    return f"diff --git a/{old} b/{new or old}\n{extra}--- a/{old}\n+++ b/{new or old}\n{BODY}".encode()


def test_a_plain_patch_is_read_and_counted() -> None:
    (change,) = read_patch(patch("src/a.cpp", extra="index 123..456 100644\n"), "p").files
    assert (change.path, change.added, change.removed, change.modes) == ("src/a.cpp", 1, 1, {"100644"})


@pytest.mark.parametrize("path", ["../etc/passwd", "src/../../x", ".git/hooks/post-checkout", "a/.GIT/config", "a//b"])
def test_paths_outside_the_tree(path: str) -> None:
    assert any("outside the tree" in each for each in read_patch(patch(path), "p").refusals())


def test_an_absolute_path_without_prefix() -> None:
    summary = read_patch(f"--- /etc/passwd\n+++ /etc/passwd\n{BODY}".encode(), "p")
    assert summary.refusals() == ["/etc/passwd lies outside the tree"]


@pytest.mark.parametrize("mode", ["120000", "160000"])
def test_links_and_submodules(mode: str) -> None:
    summary = read_patch(patch("src/a", extra=f"new file mode {mode}\n"), "p")
    assert summary.refusals() == [f"src/a is a link or submodule (mode {mode})"]


def test_binary_changes() -> None:
    data = b"diff --git a/x.bin b/x.bin\nindex 1..2 100644\nGIT binary patch\nliteral 1\nIcmZPo000310RR91\n\n"
    assert read_patch(data, "p").refusals() == ["x.bin is changed as binary data, which nobody can review"]


@pytest.mark.parametrize(
    "data",
    [
        patch("a", "b"),
        b"diff --git a/x b/x\n--- a/x\n+++ b/../y\n" + BODY.encode(),
        b"diff --git a/x b/x\nrename from x\nrename to CMakeLists.txt\n",
        b"diff --git a/x b/x\nsimilarity index 100%\ncopy from x\ncopy to y\n",
        b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,9 +1 @@\n-one\n+two\n",
        b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-one\n",
        b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ nonsense @@\n",
        b"@@ -1 +1 @@\n-one\n+two\n",
        b"<html>not found</html>",
        b"",
        b"x" * (5 << 20),
    ],
    ids=[
        "two-names",
        "plus-elsewhere",
        "rename",
        "copy",
        "long-hunk",
        "cut",
        "bad-hunk",
        "no-file",
        "html",
        "none",
        "big",
    ],
)
def test_damaged_or_disguised(data: bytes) -> None:
    with pytest.raises(RigError):
        read_patch(data, "p")


def test_content_that_looks_like_a_head_is_content() -> None:
    """A removed line ``-- a/CMakeLists.txt`` reads as ``--- a/CMakeLists.txt`` inside its hunk."""
    hidden = "@@ -1,2 +1,2 @@\n--- a/CMakeLists.txt\n-two\n+++ b/CMakeLists.txt\n+three\n"
    data = f"diff --git a/s.cpp b/s.cpp\n--- a/s.cpp\n+++ b/s.cpp\n{hidden}".encode()
    assert [change.path for change in read_patch(data, "p").files] == ["s.cpp"]


def test_a_second_file_behind_a_hunk_is_seen() -> None:
    data = patch("s.cpp") + b"--- a/CMakeLists.txt\n+++ b/CMakeLists.txt\n" + BODY.encode()
    assert read_patch(data, "p").build_changes() == ["CMakeLists.txt"]


def test_a_file_that_becomes_executable_counts_as_a_change_of_the_build() -> None:
    assert read_patch(patch("src/a", extra="old mode 100644\nnew mode 100755\n"), "p").build_changes() == ["src/a"]


@given(st.binary(max_size=400) | st.text("diff -+@ab/\n 1,", max_size=200).map(str.encode))
def test_no_input_ends_in_anything_but_a_rig_error(data: bytes) -> None:
    try:
        summary = read_patch(data, "p")
    except RigError:
        return
    assert summary.files
