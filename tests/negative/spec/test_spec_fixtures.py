"""Specs that say in comments what is wrong with them: each error on its line, and no other.

``# ERROR a | b`` on a line: these fragments are in messages or fixes of errors of that line,
one error each. ``# WARNING`` and ``# NOTE`` likewise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from llamarig.spec import rules
from llamarig.spec.load import LoadedHost, load_files
from llamarig.spec.problem import SpecProblem

HERE = Path(__file__).parent
BAD = sorted((HERE / "bad").glob("*.yml"))
GOOD = sorted((HERE / "good").glob("*.yml"))
PYDANTIC = re.compile(r"Input should|Extra inputs|Field required|valid string|type=|pydantic|Value error")


def load(path: Path) -> LoadedHost:
    [host] = load_files(path.parent, [path], path.parent).hosts
    return host


def expected(path: Path, word: str) -> list[tuple[int, str]]:
    found = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        for part in re.findall(rf"{word} (.*?)(?= ERROR | WARNING | NOTE |$)", line.partition("# ")[2]):
            found += [(number, fragment.strip()) for fragment in part.split(" | ")]
    return found


def unmatched(problems: list[SpecProblem], wanted: list[tuple[int, str]]) -> tuple[list[str], list[tuple[int, str]]]:
    left = list(problems)
    missing = []
    for line, fragment in wanted:
        hit = next((each for each in left if each.line == line and fragment in f"{each.message} {each.fix}"), None)
        if hit is None:
            missing.append((line, fragment))
        else:
            left.remove(hit)
    return [f"{each.line}: {each.message} / {each.fix}" for each in left], missing


@pytest.mark.parametrize("path", [*BAD, *GOOD], ids=lambda path: path.stem)
def test_every_fault_is_reported_on_its_line_and_nothing_else(path: Path) -> None:
    host = load(path)
    assert unmatched(host.errors, expected(path, "ERROR")) == ([], [])
    assert unmatched(host.warnings, expected(path, "WARNING")) == ([], [])
    assert unmatched(host.notes, expected(path, "NOTE")) == ([], [])


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_a_bad_spec_is_refused_in_human_words_with_a_fix(path: Path) -> None:
    host = load(path)
    assert host.spec is None
    assert host.errors
    for problem in host.errors + host.warnings + host.notes:
        assert problem.path == path
        assert problem.fix
        assert not PYDANTIC.search(problem.message + problem.fix)


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_a_good_spec_loads(path: Path) -> None:
    host = load(path)
    assert host.errors == []
    assert host.spec is not None


def test_every_rule_fires_in_some_fixture(monkeypatch: pytest.MonkeyPatch) -> None:
    fired: set[str] = set()

    def watched(rule: rules.Rule) -> rules.Rule:
        def run(view: rules.View) -> Iterator[rules.Broken]:
            for each in rule(view):
                if view.counts(each):
                    fired.add(f"{rule.__module__}.{rule.__name__}")
                yield each

        return run

    every = {f"{rule.__module__}.{rule.__name__}" for rule in rules.RULES}
    monkeypatch.setattr(rules, "RULES", tuple(watched(rule) for rule in rules.RULES))
    for path in [*BAD, *GOOD]:
        load(path)
    assert every - fired == set()
