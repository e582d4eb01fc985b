"""Curves are made of plans: each point is that of the spec with the setting changed."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llamarig.plan import plan_host
from llamarig.plan.curves import Curve, context_values, curves, with_context, with_n_max
from llamarig.spec.host import HostSpec
from tests.support.big_models import header_of, qwen35_27b, small_llama
from tests.support.plan_specs import CPU, REFERENCE, spec

HEADERS = {
    "qwen": header_of(qwen35_27b()),
    "small": small_llama(32_768, output=False),
}
CHANGED = {"context": with_context, "n-max": with_n_max}
SERVICES = st.fixed_dictionaries(
    {
        "context": st.integers(1, 1024).map(lambda steps: 256 * steps),
        "ubatch": st.sampled_from([64, 256, 512]),
        "parallel": st.integers(1, 4),
        "kv-unified": st.booleans(),
        "speculation": st.sampled_from(
            [None, {"type": "draft-mtp", "n-max": 3}, {"type": "draft-mtp", "n-max": 20}, {"type": "ngram-mod"}]
        ),
    }
)


def assert_planned(found: HostSpec, curve: Curve) -> None:
    for point in curve.points:
        plan = plan_host(CHANGED[curve.setting](found, curve.service, point.value), HEADERS, with_alternatives=False)
        assert (point.fits, point.devices, point.ram) == (plan.fits, plan.devices, plan.ram)


@given(SERVICES)
@settings(max_examples=15, deadline=None)
def test_each_point_is_the_plan_of_that_spec(service: dict[str, Any]) -> None:
    found = spec(REFERENCE, service)
    made = curves(found, HEADERS, steps=4)
    ngram = (service["speculation"] or {}).get("type") == "ngram-mod"
    assert [curve.setting for curve in made] == (["context"] if ngram else ["context", "n-max"])
    for curve in made:
        assert_planned(found, curve)
        present = plan_host(found, HEADERS, with_alternatives=False)
        assert (curve.here.devices, curve.here.ram) == (present.devices, present.ram)


@given(st.integers(1, 2000).map(lambda steps: 256 * steps), st.integers(0, 1 << 20), st.integers(1, 20))
def test_windows_grow_and_hold_the_present_one_and_the_trained_length(present: int, trained: int, steps: int) -> None:
    values = context_values(present, trained, steps)
    assert values == sorted(set(values))
    assert {present, max(present, trained)} <= set(values)
    assert values[0] >= min(present, 4096, max(trained, present))
    assert len(values) <= steps + 2


def test_with_several_services_the_others_stay_as_they_are() -> None:
    found = spec(CPU)
    found = found.model_copy(update={"services": {**found.services, "second": found.services["chat"]}})
    made = curves(found, HEADERS)
    assert [(curve.service, curve.setting) for curve in made] == [("chat", "context"), ("second", "context")]
    for curve in made:
        assert_planned(found, curve)
        other = {"chat": "second", "second": "chat"}[curve.service]
        assert len({tuple(point.ram.services[other].items()) for point in curve.points}) == 1
        assert curve.points[0].ram.used_mib < curve.points[-1].ram.used_mib


def test_a_model_with_an_unused_head_shows_what_drafting_would_take() -> None:
    made = curves(spec(REFERENCE, {"speculation": None}), HEADERS)
    n_max = made[1]
    assert (n_max.present, n_max.points[0].value, n_max.points[-1].value) == (0, 0, 16)
    used = [point.devices[0].used_mib for point in n_max.points]
    assert used == sorted(used)
    assert used[2] - used[1] == pytest.approx(149.62, abs=0.5)


def test_without_a_header_there_is_no_curve() -> None:
    assert curves(spec(REFERENCE), {"qwen": None}) == ()


def test_the_curves_of_the_reference_are_quick() -> None:
    found = spec(REFERENCE)
    start = time.process_time()
    curves(found, HEADERS)
    assert time.process_time() - start < 1.5
