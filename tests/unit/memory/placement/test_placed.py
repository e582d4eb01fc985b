"""Weights and caches on two devices and on the host against what the engine's fit tool printed, without the tool."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support import models
from tests.support.models import placed
from tests.support.models.placed import Columns, Placed

RECORDED = placed.load()


def whole(found: Columns) -> dict[str, tuple[int, int]]:
    return {name: (int(weights), int(context)) for name, (weights, context) in found.items()}


@pytest.mark.parametrize("name", placed.NAMES)
def test_every_place_holds_what_the_tool_printed(name: str) -> None:
    header = models.header(name)
    cases = [(case, printed) for model, case, printed in RECORDED if model == name]
    assert len(cases) == 10
    different = [
        f"{case}: planned {found}, printed {whole(printed)}"
        for case, printed in cases
        if (found := whole(placed.planned(header, case))) != whole(printed)
    ]
    assert not different


def test_every_kind_of_placement_is_recorded() -> None:
    cases = [case for _, case, _ in RECORDED]
    for kind in ("gpu_layers", "tensor_split", "cpu_experts", "overrides", "cache", "parallel"):
        assert len({getattr(case, kind) for case in cases}) > 1, kind
    assert any(case.overrides and case.cpu_experts and case.gpu_layers < 999 for case in cases)


@pytest.mark.parametrize(
    "change", [{"gpu_layers": 3}, {"tensor_split": (1.0, 9.0)}, {"overrides": (("ffn_up", None),)}, {"context": 40_000}]
)
def test_another_placement_would_be_seen(change: dict[str, object]) -> None:
    name, case, printed = next(entry for entry in RECORDED if entry[1].gpu_layers == 999 and not entry[1].overrides)
    other: Placed = replace(case, **change)  # type: ignore[arg-type] # fields by their names
    assert whole(placed.planned(models.header(name), other)) != whole(printed)
