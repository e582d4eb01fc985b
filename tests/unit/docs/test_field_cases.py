"""The page of field cases names rules, findings, checks and diagnoses that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from llamarig.catalog.error_texts import error_texts
from llamarig.cli.reference_diagnoses import rule_codes
from llamarig.prove.evaluate import SERVICE_RULES
from tests.support.docs import refusals

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/explanation/field-cases.md").read_text(encoding="utf-8")
NAMED = re.compile(r"\b(rule|finding|check|diagnosis|test) `([^`]+)`")


def known() -> dict[str, set[str]]:
    return {
        "rule": set(refusals.rules()),
        "finding": refusals.finding_codes(),
        "check": {rule.name for rule in SERVICE_RULES},
        "diagnosis": set(rule_codes()) | set(error_texts()),
    }


@pytest.mark.parametrize("kind", ["rule", "finding", "check", "diagnosis"])
def test_what_the_page_names_is_there(kind: str) -> None:
    named = {name for found, name in NAMED.findall(PAGE) if found == kind}
    assert named, f"the page names no {kind}"
    assert named <= known()[kind]


def test_the_tests_that_the_page_names_are_there() -> None:
    paths = [name for kind, name in NAMED.findall(PAGE) if kind == "test"]
    assert paths
    assert all((ROOT / path).exists() for path in paths)


def test_every_row_says_what_meets_the_trouble() -> None:
    rows = [line.split("|")[1:-1] for line in PAGE.splitlines() if line.startswith("|") and "---" not in line]
    assert len(rows) > 40
    assert all(len(row) == 2 and row[0].strip() and row[1].strip() for row in rows)
