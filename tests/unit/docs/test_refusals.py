"""Each refusal has a page, each page speaks of what there is, and its examples say what the code says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.docs import refusals

TEXTS = {path: path.read_text(encoding="utf-8") for path in refusals.pages()}
EXAMPLES = [
    pytest.param(match, id=f"{path.stem}:{match['name']}")
    for path, text in TEXTS.items()
    for match in refusals.EXAMPLE.finditer(text)
]


def marked(kind: str) -> set[str]:
    return set().union(*(refusals.marked(text, kind) for text in TEXTS.values()))


def test_every_finding_has_a_page_and_no_page_names_another() -> None:
    assert refusals.finding_codes() == marked("Finding")


def test_the_index_has_every_code_with_the_page_that_speaks_of_it() -> None:
    listed = refusals.indexed(TEXTS[refusals.PAGES / "README.md"])
    assert set(listed) == refusals.finding_codes()
    assert list(listed) == sorted(listed)
    for code, page in listed.items():
        assert code in refusals.marked(TEXTS[refusals.PAGES / page], "Finding"), f"{page} does not speak of {code}"


def test_a_code_that_the_index_lacks_would_be_seen() -> None:
    index = TEXTS[refusals.PAGES / "README.md"]
    less = "".join(line for line in index.splitlines(keepends=True) if "`header-composed`" not in line)
    assert refusals.finding_codes() - set(refusals.indexed(less)) == {"header-composed"}


def test_every_rule_of_the_spec_has_a_page_and_no_page_names_another() -> None:
    assert set(refusals.rules()) == marked("Rule")


def test_the_codes_are_read_from_the_source() -> None:
    assert {"does-not-fit", "header-unknown", "thin-margin"} <= refusals.finding_codes()


def test_a_code_that_does_not_exist_would_be_seen() -> None:
    assert refusals.marked("Finding: `does-not-fly`.\n", "Finding") - refusals.finding_codes() == {"does-not-fly"}


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
def test_a_page_shows_what_its_examples_make_the_code_say(path: Path) -> None:
    assert TEXTS[path] == refusals.refreshed(TEXTS[path]), "run: python -m tests.support.docs.refusals"


@pytest.mark.parametrize("match", EXAMPLES)
def test_every_example_triggers_its_refusal(match: object) -> None:
    found = refusals.EXAMPLE.fullmatch(str(match[0]))  # type: ignore[index] # a regular expression's match
    assert found is not None
    assert refusals.said(found["base"], found["kind"], found["name"], found["yaml"])


def test_every_rule_has_an_example() -> None:
    shown = {match["name"] for text in TEXTS.values() for match in refusals.EXAMPLE.finditer(text)}
    assert set(refusals.rules()) <= shown


def test_the_index_links_every_page() -> None:
    index = TEXTS[refusals.PAGES / "README.md"]
    assert [path.name for path in TEXTS if path.name != "README.md" and f"]({path.name})" not in index] == []


def test_every_page_says_why_and_what_to_do() -> None:
    for path, text in TEXTS.items():
        if path.name != "README.md":
            assert "**Why.**" in text, path.name
            assert "**What to do.**" in text, path.name
