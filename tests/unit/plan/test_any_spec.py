"""Specs drawn at random: a plan agrees with its own sums, and what it offers fits and is legal."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from llamarig.gguf import Header
from llamarig.plan import Plan, plan_host
from llamarig.plan.alternatives.legal import refused
from llamarig.plan.host import planned_subject
from llamarig.plan.short import MEMORY_CODES, shortage
from llamarig.plan.solve import solve
from llamarig.spec.host import HostSpec
from tests.support.models import header
from tests.support.plan_specs import CPU, REFERENCE, spec

MODELS = ("llama-3.1-8b", "gemma4-e2b", "qwen35-27b", "qwen3moe-30b-a3b")
WHATS = {"context": "context", "slots": "parallel", "ubatch": "ubatch"}
"""The key of what is solved for; ``n-max`` lies in ``speculation``."""


@cache
def known(name: str) -> Header:
    return header(name)


@st.composite
def services(draw: st.DrawFn, model: str) -> dict[str, Any]:
    parallel = draw(st.sampled_from([1, 2, 3, 5, 8, 24]))
    ubatch = draw(st.sampled_from([32, 100, 512, 1024]))
    flash = draw(st.sampled_from(["on", "off", "auto"]))
    kind = draw(st.sampled_from(["f16"] if flash == "off" else ["f16", "q8_0", "q4_0"]))
    found: dict[str, Any] = {
        "context": 256 * parallel * draw(st.integers(1, 64 // parallel)) + draw(st.sampled_from([0, 1])),
        "parallel": parallel,
        "ubatch": ubatch,
        "batch": max(ubatch, draw(st.sampled_from([100, 2048]))),
        "flash-attention": flash,
        "kv-cache": {"k": kind, "v": kind},
        "kv-unified": draw(st.booleans()),
        "gpu-layers": draw(st.sampled_from(["all", 1, 20])),
        "cache-ram-mib": draw(st.sampled_from([0, 3000])),
    }
    if model.startswith("qwen35") and draw(st.booleans()):
        n_max = draw(st.integers(1, 24))
        found["speculation"] = {"type": "draft-mtp", "n-max": n_max, "n-min": draw(st.integers(0, n_max))}
    return found


@st.composite
def hosts(draw: st.DrawFn) -> tuple[dict[str, Any], str]:
    name = draw(st.sampled_from(MODELS))
    found = known(name)
    card = {"model": "rtx-5090", "bus-id": "01:00.0", "reserve-mib": draw(st.integers(8000, 30_000))}
    chat = {"model": "m", "gpu": "card", "listen": {"port": 8080}, **draw(services(name))}
    models = {"m": {**CPU["models"]["small"], "size": found.minimum_size}}
    memory = {"total-mib": draw(st.integers(3000, 40_000))}
    base = {**REFERENCE, "gpus": {"card": card}, "models": models, "services": {"chat": chat}, "memory": memory}
    return base, name


def planned(base: dict[str, Any], found: Header, change: dict[str, Any]) -> tuple[HostSpec, Plan]:
    """As somebody would write it: whole keys, and those inside `speculation` and `kv-cache`."""
    service = dict(base["services"]["chat"])
    for key, value in change.items():
        inner = isinstance(value, dict) and isinstance(service.get(key), dict)
        service[key] = {**service[key], **value} if inner else value
    written = spec({**base, "services": {"chat": {key: each for key, each in service.items() if each is not None}}})
    return written, plan_host(written, {"m": found}, with_alternatives=False)


@given(host=hosts(), what=st.sampled_from([*sorted(WHATS), "n-max"]))
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_what_is_said_offered_and_solved_holds(host: tuple[dict[str, Any], str], what: str) -> None:
    base, found = host[0], known(host[1])
    asked = spec(base)
    plan = plan_host(asked, {"m": found})
    codes = {each.code for each in plan.findings if each.severity == "error"}
    assert bool(codes & MEMORY_CODES) is (max(shortage(asked, plan).values()) > 0)
    for device in plan.devices:
        terms = sum(sum(each.values()) for each in device.services.values())
        assert device.used_mib == pytest.approx(terms, abs=0.01)
    for entry in plan.alternatives:
        written, again = planned(base, found, entry["change"])
        assert again.fits, entry
        assert refused(asked, written) is None, entry
    if what == "n-max" and asked.services["chat"].speculation is None:
        what = "context"
    solution = solve(*planned_subject(asked, {"m": found}), what)
    if solution.value is not None:
        written, again = planned(base, found, solution.change)
        assert again.fits
        assert refused(asked, written) is None
    if solution.bound.next is not None and solution.bound.by != "spec":
        more = solution.bound.next
        change = {"speculation": {"n-max": more, "n-min": 0}} if what == "n-max" else {WHATS[what]: more}
        assert not planned(base, found, change)[1].fits
