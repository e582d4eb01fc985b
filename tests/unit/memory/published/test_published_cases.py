"""Every published figure that a formula can be held to: within 1 % or 2 MiB, or explained.

The figures and explanations are in ``tests/fixtures/published/cases.yml``.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import pytest

from llamarig.memory.engines import CURRENT, JUNE_2026, SEPTEMBER_2026
from llamarig.memory.process import residues_mib
from tests.support.published import Case, load
from tests.support.published.computed import Computed
from tests.support.published.models import MODELS

CASES = load()
HELD = [(case, term) for case in CASES for term in case.held]


@lru_cache(maxsize=1)
def by_name() -> dict[str, Computed]:
    return {case.name: Computed(case) for case in CASES if case.held}


@pytest.mark.parametrize(("case", "term"), HELD, ids=lambda item: item if isinstance(item, str) else item.name)
def test_a_held_figure_is_within_or_its_miss_explained(case: Case, term: str) -> None:
    found = by_name()[case.name]
    if term in case.why:
        assert not found.within(term), "it is within now: take the explanation out"
    else:
        assert found.within(term), f"published {case.held[term]}, computed {found.term(term)}"


def test_all_of_the_collection_are_here_once() -> None:
    assert {case.number for case in CASES if case.number < 200} == set(range(1, 128, 2))
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_says_where_it_is_from_and_why_it_is_not_held(case: Case) -> None:
    assert case.source
    assert case.what
    assert bool(case.held) or bool(case.seen)
    assert not case.held or case.model
    assert set(case.why) <= set(case.held)
    assert all(len(text) > 10 for text in (*case.seen.values(), *case.why.values()))


def test_most_figures_are_held_and_few_missed() -> None:
    missed = [(case.name, term) for case, term in HELD if term in case.why]
    assert len(HELD) >= 200
    assert len(missed) <= len(HELD) // 10


def test_older_eras_are_held_too() -> None:
    older = {(case.settings.era.name, term) for case, term in HELD if case.settings.era not in (JUNE_2026, CURRENT)}
    assert {("older", "context"), ("2026-04", "compute"), ("2026-04", "host-compute")} <= older


def test_a_figure_that_is_off_is_seen() -> None:
    case = next(case for case in CASES if case.number == 3)
    off = replace(case, held={"compute": 640.0, "kv-cache": 6647.0})
    assert not Computed(off).within("compute")
    assert Computed(off).difference("compute") == pytest.approx(14.8, abs=1)
    assert Computed(off).within("kv-cache")


def test_the_era_decides() -> None:
    """The mask of case 3 in f32 beside its copy, as that build had it; today the same server takes other memory."""
    case = next(case for case in CASES if case.number == 3)
    assert not Computed(replace(case, settings=replace(case.settings, era=CURRENT))).within("compute")


def test_every_model_says_where_its_dimensions_are_from() -> None:
    assert all(model.origin for model in MODELS.values())


def test_the_newest_era_keeps_an_unread_input_for_each_pass_in_flight() -> None:
    """Case 95 on two cards: the caller's own rows of 10 MiB, which a pass of tokens does not read, three times more."""
    case = next(case for case in CASES if case.number == 95)
    newer = Computed(replace(case, settings=replace(case.settings, era=SEPTEMBER_2026)))
    assert newer.difference("host-compute") == pytest.approx(30.0, abs=0.1)
    assert newer.within("compute")


def test_the_residue_of_two_cards_is_the_greatest_that_was_published() -> None:
    """Fitted, not derived: no server of these reports took more beside its buffers, and some took as much."""
    several = [case.residue for case in CASES if len(case.residue) == 2]
    assert len(several) >= 10
    for number, fitted in enumerate(residues_mib(2)):
        assert max(residue[number] for residue in several) == fitted
