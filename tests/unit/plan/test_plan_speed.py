"""Speed in a plan: what is predicted, what is refused with its arithmetic, what is doubted."""

from __future__ import annotations

import copy
import time
from pathlib import Path
from typing import Any

import pytest

from llamarig.plan import Plan, plan_host, plan_json, plan_project
from llamarig.plan.load import load_of
from llamarig.plan.speed import speed_of
from llamarig.spec.host import HostSpec
from llamarig.spec.read_yaml import read_file
from tests.support import big_models
from tests.support.plan_specs import CPU, REFERENCE, spec

ROOT = Path(__file__).resolve().parents[3]
HEADER = big_models.header_of(big_models.qwen35_27b())
CODES = {"claimed-size", "claimed-arithmetic", "beyond-bandwidth", "beyond-arithmetic", "faster-than-predicted"}
TWICE = {"gpu": None, "gpus": ["blackwell", "ada"], "projector_gpu": None, "speculation": None}


def planned(known: bool = True, /, **changes: Any) -> Plan:
    """The reference stack with changes to its service ``chat``, its model and its card."""
    spec: dict[str, Any] = copy.deepcopy(REFERENCE)
    spec["services"]["chat"] |= {key.replace("_", "-"): value for key, value in changes.pop("chat", {}).items()}
    spec["models"]["qwen"] |= changes.pop("qwen", {})
    spec["gpus"]["blackwell"] |= changes.pop("blackwell", {})
    assert not changes
    return plan_host(HostSpec.model_validate(spec), {"qwen": HEADER if known else None}, with_alternatives=False)


def said(plan: Plan, code: str) -> list[str]:
    return [f"{finding.severity} {finding.message}" for finding in plan.findings if finding.code == code]


def codes(plan: Plan) -> set[str]:
    return {finding.code for finding in plan.findings} & CODES


def test_a_plan_says_how_fast_its_service_is_expected_to_be() -> None:
    speed = plan_json(planned())["services"]["chat"]["speed"]
    assert 42 < speed["decode-tok-s"] < 52
    assert speed["basis"] == "runs-of-this-card"
    assert [row["depth"] for row in speed["at-depth"]] == [0, 8192, 32_768, 131_072, 262_144]
    rates = [row["decode-tok-s"] for row in speed["at-depth"]]
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] == pytest.approx(12.6, rel=0.1)
    assert speed["at-depth"][0]["prefill-tok-s"] is None
    assert speed["at-depth"][-1]["prefill-tok-s"] == pytest.approx(226.75, rel=0.06)
    assert speed["limit"]["decode-tok-s"] > speed["decode-tok-s"]
    assert codes(planned()) == set()


def test_where_nothing_can_be_said_there_is_null() -> None:
    assert plan_json(planned(False))["services"]["chat"]["speed"] is None
    spilled = planned(chat={"gpu_layers": 20})
    assert plan_json(spilled)["services"]["chat"]["speed"] is None
    assert spilled.speeds["chat"] is not None
    assert "read from RAM" in plan_json(spilled)["services"]["chat"]["speed-unknown"]
    assert "header" in plan_json(planned(False))["services"]["chat"]["speed-unknown"]
    assert plan_json(planned())["services"]["chat"]["speed-unknown"] is None


def test_an_expectation_beyond_bandwidth_is_an_error_with_the_arithmetic() -> None:
    plan = planned(chat={"speculation": None, "expect": {"decode-tok-s": 28.0}})
    (message,) = said(plan, "beyond-bandwidth")
    assert message.startswith("error service chat is expected to generate 28 tok/s, and blackwell cannot pass 27: ")
    assert "432 GB/s / 16.0 GB a pass = 27.0 passes/s" in message
    assert not plan.fits


def test_one_below_the_bound_but_above_the_prediction_is_a_warning() -> None:
    plan = planned(chat={"speculation": None, "expect": {"decode-tok-s": 26.5}})
    (message,) = said(plan, "faster-than-predicted")
    assert message.startswith("warning service chat is expected to generate 26.5 tok/s, and 21.")
    assert plan.fits
    assert codes(planned(chat={"speculation": None, "expect": {"decode-tok-s": 21.5}})) == set()


def test_reading_has_bounds_of_its_own() -> None:
    (message,) = said(planned(chat={"expect": {"prefill-tok-s": 9000.0}}), "beyond-arithmetic")
    assert "385 TFLOPS at their peak / 50.2 billion operations a token" in message
    (message,) = said(planned(chat={"expect": {"prefill-tok-s": 2000.0}}), "faster-than-predicted")
    assert "expected to read 2,000.0 tok/s" in message


def test_drafting_raises_the_bound_and_no_more() -> None:
    plan = planned(chat={"speculation": {"type": "draft-mtp", "n-max": 8}, "expect": {"decode-tok-s": 500.0}})
    (message,) = said(plan, "beyond-bandwidth")
    assert "a pass yields 9 tokens at most, less what drafting reads" in message


def test_claims_are_held_against_arithmetic() -> None:
    plan = planned(qwen={"claims": {"parameters": 125e9, "bits": 4.0, "size-gb": 12.2}})
    assert len(said(plan, "claimed-size")) == 2, "neither the claimed nor the pinned size is enough"
    assert "125 billion parameters x 4 bits / 8 = 62.5 GB, and 12.2 are claimed" in said(plan, "claimed-size")[0]
    assert codes(planned(qwen={"claims": {"parameters": 27.3e9, "bits": 5.01}})) == set()
    assert codes(planned(blackwell={"claims": {"fp32-tflops": 24.0}})) == set()
    assert codes(planned(blackwell={"claims": {"fp32-tflops": 100.0}})) == {"claimed-arithmetic"}


def test_experts_at_rest_raise_the_bound_of_a_claim() -> None:
    claims = {"parameters": 120e9, "active-parameters": 5e9, "bits": 4.0}
    expect = {"speculation": None, "expect": {"decode-tok-s": 150.0}}
    assert "beyond-bandwidth" not in codes(planned(False, qwen={"claims": claims}, chat=expect))
    dense = {key: value for key, value in claims.items() if key != "active-parameters"}
    assert "beyond-bandwidth" in codes(planned(False, qwen={"claims": dense}, chat=expect))


@pytest.mark.parametrize(
    ("mode", "most", "words"),
    [("layer", 20, "314 GB/s one after the other / 16.0 GB"), ("tensor", 41, "656 GB/s together / 16.0 GB")],
)
def test_several_cards_have_a_bound_too(mode: str, most: int, words: str) -> None:
    plan = planned(chat={**TWICE, "split_mode": mode, "expect": {"decode-tok-s": 9e6}})
    (message,) = said(plan, "beyond-bandwidth")
    assert f"and blackwell and ada cannot pass {most}: " in message
    assert words in message
    assert not plan.fits
    below = planned(chat={**TWICE, "split_mode": mode, "expect": {"decode-tok-s": most - 1.0}})
    assert codes(below) == set()
    assert plan_json(below)["services"]["chat"]["speed"] is None
    assert below.speeds_unknown["chat"] == "a model on several cards is not predicted"


def test_claims_of_several_cards_are_held_against_all_of_them() -> None:
    chat = {**TWICE, "split_mode": "layer", "expect": {"decode-tok-s": 9e6, "prefill-tok-s": 9e6}}
    plan = planned(
        chat=chat, qwen={"claims": {"parameters": 125e9, "bits": 4.0}}, blackwell={"claims": {"fp32-tflops": 100}}
    )
    assert "blackwell and ada have 42.4 GB" in said(plan, "claimed-size")[0]
    assert codes(plan) == {"claimed-size", "claimed-arithmetic", "beyond-bandwidth", "beyond-arithmetic"}
    of_claim = planned(False, chat=chat, qwen={"claims": {"size-gb": 12.2}})
    # Nobody says which card reads how much of it: the faster one.
    assert "432 GB/s one after the other / 12.2 GB a pass" in said(of_claim, "beyond-bandwidth")[0]


def test_an_expectation_that_nothing_is_held_against_is_noted() -> None:
    (note,) = said(
        planned(False, chat={"expect": {"decode-tok-s": 9e6, "prefill-tok-s": 5.0}}), "expectation-unchecked"
    )
    assert note.startswith("note service chat is expected to reach 9,000,000 tok/s and 5 tok/s, which nothing")
    assert note.endswith("the model's header is not at hand")
    cpu = spec(CPU, {"expect": {"decode-tok-s": 9e6}})
    (note,) = said(plan_host(cpu, {"small": None}), "expectation-unchecked")
    assert note.endswith("the CPU backend is not predicted: no bandwidth of RAM is known")
    assert said(planned(False), "expectation-unchecked") == []
    assert said(planned(chat={"expect": {"decode-tok-s": 20.0}}), "expectation-unchecked") == []


def test_the_published_claims_are_refused() -> None:
    document, problems = read_file(ROOT / "inventory/one-4090-125b-claims.yml")
    assert document is not None
    assert problems == []
    plan = plan_project(HostSpec.model_validate(document.data()), ROOT, cache=ROOT / "no-cache")
    assert codes(plan) == {"claimed-size", "claimed-arithmetic", "beyond-bandwidth"}
    assert not plan.fits
    assert "= 62.5 GB, and 12.2 are claimed, and single has 25.8 GB" in said(plan, "claimed-size")[0]
    assert "1,008 GB/s / 12.2 GB a pass = 82.6 passes/s" in said(plan, "beyond-bandwidth")[0]
    assert "100,000,000,000,000 tok/s" in said(plan, "beyond-bandwidth")[0]


def test_a_prediction_costs_less_than_two_milliseconds() -> None:
    spec = HostSpec.model_validate(REFERENCE)
    load_headers = {"qwen": HEADER}
    load = load_of(spec, "chat", load_headers)
    took = []
    for _ in range(20):
        before = time.process_time()
        assert speed_of(spec, "chat", load, load_headers) is not None
        took.append(time.process_time() - before)
    assert min(took) < 0.002
