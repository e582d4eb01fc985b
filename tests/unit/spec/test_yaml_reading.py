"""The YAML reader: bounded, YAML 1.2 booleans, every value with its line, every fault in human words."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llamarig.spec.problem import SpecProblem
from llamarig.spec.read_yaml import MAX_BYTES, read_bytes, read_file
from llamarig.spec.tree import Tree, find

HERE = Path("spec.yml")


def read(text: str | bytes) -> tuple[Tree | None, list[SpecProblem]]:
    return read_bytes(text.encode() if isinstance(text, str) else text, HERE)


def data(text: str) -> Any:
    tree, problems = read(text)
    assert problems == []
    assert tree is not None
    return tree.data()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on", "on"),
        ("off", "off"),
        ("yes", "yes"),
        ("no", "no"),
        ("y", "y"),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("12:30", "12:30"),
        ("01:00.0", "01:00.0"),
        ("017", 17),
        ("0x1f", "0x1f"),
        ("1_000", "1_000"),
        ("1e3", 1000.0),
        ("-1.5", -1.5),
        (".inf", ".inf"),
        (".nan", ".nan"),
        ("1" * 19, "1" * 19),
        ("1e999", "1e999"),
        ("2026-01-01", "2026-01-01"),
        ("'true'", "true"),
        ('"1"', "1"),
        ("|\n  a\n  b\n", "a\nb\n"),
        ("! 12", "12"),
    ],
)
def test_a_scalar_is_read_by_the_core_schema_of_yaml_1_2(text: str, value: object) -> None:
    found = data(f"key: {text}\n")["key"]
    assert found == value
    assert type(found) is type(value)


def test_every_value_knows_its_line_by_its_key() -> None:
    tree, _ = read("a: 1\nb:\n  c:\n  - x\n  - y: z\n")
    assert tree is not None
    lines = [find(tree, loc)[0].line for loc in [("a",), ("b",), ("b", "c"), ("b", "c", 0), ("b", "c", 1, "y")]]
    assert lines == [1, 2, 3, 4, 5]
    assert find(tree, ("b", "nothing", "c")) == (find(tree, ("b", "c"))[0], ("b", "c"))


def test_an_alias_counts_where_it_is_used() -> None:
    tree, problems = read("a: &x {k: 1}\nb: *x\n")
    assert problems == []
    assert tree is not None
    assert tree.data() == {"a": {"k": 1}, "b": {"k": 1}}
    assert find(tree, ("b",))[0].line == 2


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", 1, "the file is empty"),
        ("# only a comment\n", 1, "the file is empty"),
        ("---\n...\n", 1, "the file is empty"),
        ("a:\n\tb: c\n", 2, "a tab"),
        ("a: b: c\n", 1, "a second `: `"),
        ("a: 'x\n", 2, "a quote is opened"),
        ("a: [1, 2\n", 2, "opened and never closed"),
        ("a: [\n", 2, "opened and never closed"),
        ("a: - b\n", 1, "no list can begin"),
        ("a: &\n", 1, "has no name"),
        ('a: "\\q"\n', 1, "no known escape"),
        ('a: "\\uzzzz"\n', 1, "a wrong escape"),
        ("a: 1\n b: 2\n", 2, "a second `: `"),
        ("a:\n  b: 1\n c: 2\n", 3, "do not stand under each other"),
        ("a: b\nc\n", 3, "a key without a `:`"),
        ("a: @b\n", 1, "a stray character"),
        ("a: 1\n---\nb: 2\n", 2, "a second YAML document"),
        ("a: 1\nb: 2\na: 3\n", 3, "`a` is given twice, first on line 1"),
        ("<<: {a: 1}\n", 1, "merge keys"),
        ("a: !!python/object:os.system x\n", 1, "YAML tag"),
        ("a: !vault |\n  x\n", 1, "YAML tag"),
        ("? [a]\n: b\n", 1, "where a key belongs"),
        ("&a x: 1\n*a : 2\n", 2, "`*a` names no anchor"),
        ("a: *b\n", 1, "`*b` names no anchor"),
        ("a: &x [*x]\n", 1, "`*x` names no anchor"),
        ("a: 1\nb: \x00\n", 2, "control character"),
        ("%YAML 3.0\n---\na: 1\n", 1, "%YAML"),
        (b"a: \xff\xfe\n", 1, "not UTF-8"),
        ("a: 1\n".encode("utf-16"), 1, "not UTF-8"),
    ],
)
def test_a_fault_is_named_with_its_line_and_a_fix(text: str | bytes, line: int, words: str) -> None:
    _, problems = read(text)
    assert [problem.line for problem in problems] == [line]
    assert words in problems[0].message
    assert problems[0].fix
    assert problems[0].path == HERE


def test_several_faults_of_one_file_are_found_in_one_run() -> None:
    _, problems = read("a: 1\na: 2\n<<: x\nb: !x y\n")
    assert [problem.line for problem in problems] == [2, 3, 4]


BOMB = "a0: &a0 [" + ",".join(["x"] * 9) + "]\n"
BOMB += "".join(f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30))


@pytest.mark.parametrize(
    "text",
    [
        "[" * 200_000,
        "- " * 200_000,
        "{a: " * 100_000,
        "a:\n" + "".join(" " * n + "b:\n" for n in range(1, 900)),
        BOMB,
        "a: [" + "1," * 100_000 + "]",
        "- &x\n" * 60_000,
    ],
    ids=["brackets", "dashes", "braces", "indentation", "aliases", "many", "anchors"],
)
def test_a_hostile_file_ends_in_an_error_within_a_second(text: str) -> None:
    started = time.process_time()
    tree, problems = read(text)
    assert time.process_time() - started < 1.0
    assert tree is None
    assert len(problems) == 1


def test_what_is_no_small_file_is_refused(tmp_path: Path) -> None:
    big = tmp_path / "big.yml"
    big.write_bytes(b"a: 1\n" + b"#" * MAX_BYTES)
    assert "larger than" in read_file(big)[1][0].message
    assert "larger than" in read(b"#" * (MAX_BYTES + 1))[1][0].message
    assert "not a regular file" in read_file(tmp_path)[1][0].message
    assert "cannot be read" in read_file(tmp_path / "none.yml")[1][0].message


def test_a_byte_order_mark_is_no_fault() -> None:
    assert data("\ufeffa: 1\n") == {"a": 1}


def test_a_message_cannot_steer_a_terminal() -> None:
    problem = SpecProblem(HERE, 1, "a \x1b[31m b \u202e c" + "x" * 9999, "\x07")
    assert problem.message.startswith("a \\x1b[31m b \\u202e c")
    assert len(problem.message) <= 600
    assert problem.fix == "\\x07"


@given(st.one_of(st.binary(max_size=400), st.text(max_size=400).map(str.encode)))
@settings(max_examples=300, deadline=None)
def test_any_bytes_give_a_tree_or_a_problem_with_a_line(content: bytes) -> None:
    tree, problems = read_bytes(content, HERE)
    assert tree is not None or problems
    for problem in problems:
        assert 1 <= problem.line <= content.count(b"\n") + content.count(b"\r") + content.count(b"\xc2\x85") + 9999
        assert problem.message
        assert problem.fix


# JSON writes what lies beyond 16 bits as two escapes, which YAML does not join.
TEXT = st.text(alphabet=st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]), max_size=12)


@given(
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(-(10**17), 10**17), TEXT),
        lambda below: st.one_of(st.lists(below, max_size=4), st.dictionaries(TEXT, below, max_size=4)),
        max_leaves=20,
    ).filter(lambda value: value is not None)
)
@settings(max_examples=150, deadline=None)
def test_what_json_writes_is_read_back_the_same(value: Any) -> None:
    tree, problems = read(json.dumps(value))
    if any("<<" in str(problem.message) for problem in problems):
        return
    assert problems == []
    assert tree is not None
    assert tree.data() == value
