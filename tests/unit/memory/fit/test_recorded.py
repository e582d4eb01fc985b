"""The memory model against what the engine's own fit tools printed, without the tools.

The figures were recorded by ``benchmarks/memory_vs_fit.py --record``; each fixture says from which engine and seed.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tests.support import models
from tests.support.models import fit
from tests.support.models.large import LARGE

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures" / "fit"
TREES = [path.stem for path in sorted(FIXTURES.glob("*.json"))]
RECORDED = {tree: fit.load(FIXTURES / f"{tree}.json") for tree in TREES}
PAIRS = [(tree, name) for tree, cases in RECORDED.items() for name in cases]
BAR = 20
"""Settings of each model that has to be met."""


def test_both_engines_and_all_models_are_recorded() -> None:
    assert TREES == ["v0.1", "v0.4"]
    for cases in RECORDED.values():
        assert set(cases) == set(models.MODELS)
        assert all(len(cases[model.name]) == BAR for model in LARGE)


@pytest.mark.parametrize(("tree", "name"), PAIRS)
def test_every_column_is_what_the_tool_printed(tree: str, name: str) -> None:
    header = models.header(name)
    different = [
        f"{case.drawn}: planned {tuple(planned)}, printed {tuple(case.printed)}"
        for case in RECORDED[tree][name]
        if (planned := fit.planned(header, case.drawn, tree)) != case.printed
    ]
    assert not different


@pytest.mark.parametrize(
    ("change", "column"), [({"context": 65_536}, 1), ({"cache_k": "f32"}, 1), ({"ubatch": 2048, "batch": 2048}, 2)]
)
def test_another_setting_would_be_seen(change: dict[str, int | str], column: int) -> None:
    name = "llama-3.1-8b"
    case = next(case for case in RECORDED["v0.1"][name] if case.drawn.ubatch < 512 and case.drawn.cache_k != "f32")
    other = dataclasses.replace(case.drawn, **change)  # type: ignore[arg-type] # fields by their names
    assert fit.planned(models.header(name), other, "v0.1")[column] != case.printed[column]


def test_the_engine_s_version_is_seen_where_it_matters() -> None:
    name = "nemotron-3-nano-30b-a3b"
    header = models.header(name)
    differs = [
        fit.planned(header, case.drawn, "v0.1").compute != case.printed.compute for case in RECORDED["v0.4"][name]
    ]
    assert any(differs)
