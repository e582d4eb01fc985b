"""Settings with which the engine is known to give up at its start."""

from __future__ import annotations

import pytest

from llamarig.plan import plan_host
from tests.support.models import header
from tests.support.plan_specs import CPU, spec


@pytest.mark.parametrize(
    ("model", "kv", "parallel", "aborts"),
    [
        ("phi4", "q8_0", 2, True),
        ("phi4", "q8_0", 1, False),
        ("phi4", "f16", 2, False),
        ("qwen3-0.6b", "q8_0", 2, False),
    ],
)
def test_the_fused_models_and_a_quantised_cache(model: str, kv: str, parallel: int, aborts: bool) -> None:
    host = spec(CPU, {"kv-cache": {"k": kv, "v": kv}, "parallel": parallel})
    found = [each for each in plan_host(host, {"small": header(model)}).findings if each.code == "engine-aborts"]
    assert bool(found) is aborts
    assert all("parallel: 1" in each.fix for each in found)
