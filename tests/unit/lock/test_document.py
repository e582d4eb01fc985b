"""Values change in place; comments, order, quoting, line ends and everything else stay."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamarig.converge.locking.document import dotted, replaced, unified, write_atomically
from llamarig.errors import RigError

HERE = Path("box.yml")
TEXT = """\
# first comment
host: box   # the host
models:
  qwen:   {repo: a/b, revision: unlocked, "size": unlocked, sha256: 'unlocked'}  # in one line

  other:
    sha256: "unlocked" # quoted
    shards:
      - {sha256: unlocked}
      -   sha256: unlocked
"""


def test_only_the_values_change() -> None:
    sha = "ab" * 32
    after = replaced(
        TEXT,
        HERE,
        {
            ("models", "qwen", "revision"): "c" * 40,
            ("models", "qwen", "size"): 17,
            ("models", "qwen", "sha256"): sha,
            ("models", "other", "sha256"): sha,
            ("models", "other", "shards", 1, "sha256"): sha,
        },
    )
    expected = (
        TEXT.replace("revision: unlocked", f"revision: {'c' * 40}")
        .replace('"size": unlocked', '"size": 17')
        .replace("'unlocked'", f"'{sha}'")
        .replace('"unlocked"', f'"{sha}"')
        .replace("-   sha256: unlocked", f"-   sha256: {sha}")
    )
    assert after == expected


def test_a_hash_that_reads_as_a_number_is_quoted() -> None:
    number = "1" * 40
    assert replaced("a: unlocked\n", HERE, {("a",): number}) == f'a: "{number}"\n'
    assert replaced("a: unlocked\n", HERE, {("a",): "12e" + "3" * 37}) == f'a: "12e{"3" * 37}"\n'


def test_windows_line_ends_and_missing_last_one_stay() -> None:
    assert replaced("a: 1\r\nb: unlocked", HERE, {("b",): "ff"}) == "a: 1\r\nb: ff"


def test_an_anchored_value_changes_where_it_is_written() -> None:
    assert replaced("a: &x unlocked\nb: *x\n", HERE, {("b",): "ff"}) == "a: &x ff\nb: *x\n"


@pytest.mark.parametrize("text", ["a: |\n  unlocked\n", "a: [unlocked]\n", "b: unlocked\n"])
def test_what_cannot_be_rewritten_in_place_is_refused(text: str) -> None:
    with pytest.raises(RigError, match="cannot rewrite"):
        replaced(text, HERE, {("a",): "ff"})


@given(st.text("abc #'\"{}[]:,-\n", max_size=40), st.text("0123456789abcdef", min_size=40, max_size=40))
def test_the_rest_of_any_document_stays(noise: str, value: str) -> None:
    text = f"# {noise.replace(chr(10), chr(10) + '# ')}\na: unlocked # {noise.partition(chr(10))[0]}\nb: 1\n"
    after = replaced(text, HERE, {("a",): value})
    assert after.replace(f'"{value}"', value).replace(f"a: {value}", "a: unlocked", 1) == text


def test_a_location_reads_as_people_write_it() -> None:
    assert dotted(("models", "qwen", "shards", 0, "sha256")) == "models.qwen.shards[0].sha256"


def test_the_difference_is_a_unified_diff() -> None:
    assert unified("inventory/box.yml", "a: unlocked\n", "a: ff\n") == (
        "--- a/inventory/box.yml\n+++ b/inventory/box.yml\n@@ -1 +1 @@\n-a: unlocked\n+a: ff\n"
    )


def test_a_file_is_replaced_in_one_step_and_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "box.yml"
    path.write_text("old")
    path.chmod(0o640)
    link = tmp_path / "link.yml"
    link.symlink_to(path)
    write_atomically(link, b"new")
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o640
    assert link.is_symlink()
    assert sorted(tmp_path.iterdir()) == [path, link]
