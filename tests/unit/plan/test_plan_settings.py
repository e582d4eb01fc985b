"""Settings of a service in the engine's terms, where an environment variable or a raw argument decides."""

from __future__ import annotations

from typing import Any

import pytest

from llamarig.plan.settings import settings_of
from tests.support.plan_specs import REFERENCE, spec


@pytest.mark.parametrize(
    ("service", "offloads"),
    [
        ({}, True),
        ({"environment": {"GGML_OP_OFFLOAD_MIN_BATCH": "257"}}, False),
        ({"environment": {"GGML_OP_OFFLOAD_MIN_BATCH": "256"}}, True),
        ({"environment": {"GGML_OP_OFFLOAD_MIN_BATCH": "many"}}, True),
        ({"unsafe-args": ["--no-op-offload"]}, False),
    ],
)
def test_a_pass_is_computed_on_a_card_from_some_length_on(service: dict[str, Any], offloads: bool) -> None:
    host = spec(REFERENCE, service)
    assert settings_of(host, host.services["chat"]).op_offload is offloads


def test_the_era_is_that_of_the_build() -> None:
    host = spec(REFERENCE, engine={**REFERENCE["engine"], "build-number": 8946})
    assert settings_of(host, host.services["chat"]).era.name == "2026-04"
