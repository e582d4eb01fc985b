"""What would fit instead: in order of harm, with figures, each planned, in few plans."""

from __future__ import annotations

import gc
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llamarig.gguf import Header
from llamarig.plan import Plan, plan_host
from llamarig.plan.alternatives.search import Verdict, first_fitting
from llamarig.plan.argv import argv
from llamarig.plan.stand_in import scaled
from llamarig.spec.host import HostSpec
from tests.support.big_models import header_of, qwen35_27b, small_llama
from tests.support.plan_specs import CPU, REFERENCE, spec

QWEN = header_of(qwen35_27b())
PLAIN = small_llama(32_768)
REFUSED = spec(REFERENCE, {"accept-margin": None})


def plan(found: HostSpec, header: Header = QWEN) -> Plan:
    return plan_host(found, {"qwen": header, "small": PLAIN})


def kinds(found: Plan) -> list[str]:
    return [next(iter(entry["change"])) for entry in found.alternatives]


def planned_again(base: dict[str, Any], service: dict[str, Any], entry: dict[str, Any]) -> Plan:
    """The plan of a spec that somebody edited as the alternative says."""
    change = dict(entry["change"])
    old = {**base["services"]["chat"], **service}
    for key in ("speculation", "kv-cache"):
        if isinstance(change.get(key), dict):
            change[key] = {**old.get(key, {}), **change[key]}
    models = change.pop("models", {})
    edited = {name: {**base["models"][name], **file} for name, file in models.items()}
    size = models.get("qwen", {}).get("size")
    header = QWEN if size is None else scaled(QWEN, size)
    return plan(spec(base, {**service, **change}, models={**base["models"], **edited}), header)


SHORTAGES: list[dict[str, Any]] = [
    {"accept-margin": None},
    {"accept-margin": None, "ubatch": 512, "parallel": 2, "context": 230_000},
    {"accept-margin": None, "kv-cache": {"k": "f16", "v": "f16"}, "context": 131_072},
    {"accept-margin": None, "speculation": {"type": "draft-mtp", "n-max": 8, "kv-cache": "q4_0"}},
    {"accept-margin": None, "projector-gpu": None, "context": 250_000},
    {"accept-margin": None, "speculation": None, "kv-cache": {"k": "f16", "v": "f16"}},
]


@pytest.mark.parametrize("service", SHORTAGES)
def test_what_is_offered_fits_when_a_user_writes_it(service: dict[str, Any]) -> None:
    found = plan(spec(REFERENCE, service))
    assert not found.fits
    assert found.alternatives
    for entry in found.alternatives:
        again = planned_again(REFERENCE, service, entry)
        assert again.fits, entry
        free = {device.gpu: round(device.free_mib, 2) for device in again.devices if device.services}
        assert entry["free-mib"] == pytest.approx(free, abs=0.02)
        before = {device.gpu: device.used_mib for device in found.devices}
        for gpu, mib in entry["saves-mib"].items():
            after = next(device.used_mib for device in again.devices if device.gpu == gpu)
            assert mib == pytest.approx(before[gpu] - after, abs=0.02)


def test_they_come_in_order_of_harm() -> None:
    order = ["speculation", "ubatch", "parallel", "speculation", "context", "kv-cache", "models", "projector-gpu",
             "experts-on-cpu", "gpu-layers", "models"]  # fmt: skip
    for service in SHORTAGES:
        found = iter(order)
        for kind in kinds(plan(spec(REFERENCE, service))):
            assert kind in found, kind


def test_each_says_what_it_costs_in_figures() -> None:
    harms = {next(iter(each["change"])): each["harm"] for each in plan(REFUSED).alternatives}
    assert "at most 5 tokens instead of 9" in harms["speculation"]
    assert "93 % of what is asked for" in harms["context"]
    assert "GB instead of 17.13" in harms["models"]
    assert "bits a weight instead of 5.01" in harms["models"]
    assert "layers run from RAM" in harms["gpu-layers"]
    slower = plan(spec(REFERENCE, {"accept-margin": None, "ubatch": 512, "context": 240_128}))
    assert "passes of 256 tokens instead of 512" in slower.alternatives[0]["harm"]


def test_a_projector_moves_to_another_card_of_the_host() -> None:
    found = plan(spec(REFERENCE, {"projector-gpu": None, "context": 235_008, "accept-margin": None}))
    [moved] = [each for each in found.alternatives if "projector-gpu" in each["change"]]
    assert moved["change"] == {"projector-gpu": "ada"}
    assert moved["saves-mib"]["blackwell"] == pytest.approx(982.0, abs=0.1)
    assert moved["saves-mib"]["ada"] == pytest.approx(-982.0, abs=0.1)


def test_without_another_card_the_cpu_reads_images() -> None:
    alone = {"blackwell": REFERENCE["gpus"]["blackwell"]}
    service = {"projector-gpu": None, "context": 235_008, "accept-margin": None}
    found = plan(spec(REFERENCE, service, gpus=alone))
    [moved] = [each for each in found.alternatives if "projector-on-cpu" in each["change"]]
    assert moved["change"] == {"projector-on-cpu": True}
    assert moved["saves-ram-mib"] == pytest.approx(-982.0, abs=0.1)
    done = spec(REFERENCE, {**service, "projector-on-cpu": True}, gpus=alone)
    assert plan(done).fits
    assert "--no-mmproj-offload" in argv(done, "chat")


def test_layers_in_ram_cost_ram() -> None:
    [moved] = [each for each in plan(REFUSED).alternatives if "gpu-layers" in each["change"]]
    assert moved["saves-ram-mib"] < 0


def test_another_quant_is_a_known_file_by_its_bytes() -> None:
    [other] = [each for each in plan(REFUSED).alternatives if "models" in each["change"]]
    file = other["change"]["models"]["qwen"]
    assert set(file) == {"repo", "revision", "file", "sha256", "size"}
    assert 15_000_000_000 < file["size"] < 17_125_207_136


def test_a_drafting_service_is_offered_no_file_without_the_head() -> None:
    without = {"accept-margin": None, "speculation": None, "kv-cache": {"k": "f16", "v": "f16"}, "context": 140_000}
    [free] = [each for each in plan(spec(REFERENCE, without)).alternatives if "models" in each["change"]]
    drafting = {**without, "speculation": {"type": "draft-mtp", "n-max": 1}, "context": 120_000}
    [bound] = [each for each in plan(spec(REFERENCE, drafting)).alternatives if "models" in each["change"]]
    assert "unsloth" in free["change"]["models"]["qwen"]["repo"]
    assert bound["change"]["models"]["qwen"]["size"] not in {14_252_845_984, 13_146_393_504, 12_040_883_104}


def test_two_changes_together_where_no_single_one_is_enough() -> None:
    service = {
        "accept-margin": None,
        "gpu-layers": 0,
        "kv-cache": {"k": "q4_0", "v": "q4_0"},
        "context": 262_144,
        "parallel": 4,
        "kv-unified": True,
        "projector-gpu": None,
        "speculation": {"type": "draft-mtp", "n-max": 8, "kv-cache": "q4_0"},
    }
    small = {"blackwell": {"model": "rtx-2000-ada", "bus-id": "01:00.0", "reserve-mib": 13_000}}
    found = plan(spec(REFERENCE, service, gpus=small, memory={"total-mib": 200_000}))
    assert not found.fits
    pairs = [each for each in found.alternatives if len(each["change"]) > 1 or "; " in each["harm"]]
    assert pairs == list(found.alternatives) != []
    for entry in pairs:
        base = {**REFERENCE, "gpus": small, "memory": {"total-mib": 200_000}}
        assert planned_again(base, service, entry).fits, entry


def test_a_pair_comes_before_moving_layers_and_leaves_a_window_worth_having() -> None:
    card = {"blackwell": {"model": "rtx-5080", "bus-id": "01:00.0"}}
    service = {"accept-margin": None, "projector-gpu": None, "context": 65_536, "kv-cache": {"k": "f16", "v": "f16"}}
    found = plan(spec(REFERENCE, service, gpus=card))
    first, *_, layers, coarse = found.alternatives
    assert set(first["change"]) == {"context", "models"}
    assert first["change"]["context"] >= 65_536 // 4
    assert planned_again({**REFERENCE, "gpus": card}, service, first).fits
    assert first["speed"]["decode-tok-s"] > first["speed"]["decode-tok-s-full"] > 0
    assert list(layers["change"]) == ["gpu-layers"]
    assert "speed" not in layers, "what is read from RAM is not predicted"
    assert "not recommended: quants of 2 bits lose quality" in coarse["harm"]


SMALL_CARD = {"blackwell": {"model": "rtx-5070", "bus-id": "01:00.0"}}
"""12 GB."""
LONG: dict[str, Any] = {
    "accept-margin": None,
    "projector-gpu": None,
    "projector-on-cpu": True,
    "speculation": None,
    "context": 163_840,
    "kv-cache": {"k": "q8_0", "v": "q8_0"},
}


def test_a_coarse_file_in_a_pair_comes_before_half_the_layers_in_ram() -> None:
    found = plan(spec(REFERENCE, LONG, gpus=SMALL_CARD))
    first, *rest = found.alternatives
    assert set(first["change"]) == {"context", "models"}
    assert "not recommended: quants of 2 bits lose quality" in first["harm"]
    assert "gpu-layers" in rest[-1]["change"]
    paired = [each for each in found.alternatives if "models" in each["change"]]
    sizes = [each["change"]["models"]["qwen"]["size"] for each in paired]
    assert sizes == sorted(sizes, reverse=True)
    for each in paired:
        assert len(each["change"]) > 1
        assert planned_again({**REFERENCE, "gpus": SMALL_CARD}, LONG, each).fits


def test_a_coarse_file_that_is_enough_alone_stands_alone() -> None:
    cards = {"blackwell": SMALL_CARD["blackwell"] | {"reserve-mib": 1800}}
    found = plan(spec(REFERENCE, LONG | {"context": 8192}, gpus=cards))
    assert [list(each["change"]) for each in found.alternatives] == [["gpu-layers"], ["models"]]
    assert "2 bits lose quality" in found.alternatives[1]["harm"]


def test_where_ram_is_short_its_caches_come_first() -> None:
    found = plan_host(spec(CPU, {"cache-ram-mib": 40_000}), {"small": PLAIN})
    assert not found.fits
    first = found.alternatives[0]
    assert first["change"] == {"cache-ram-mib": 8192}
    assert first["saves-ram-mib"] == 40_000 - 8192
    assert "are read again" in first["harm"]
    many = plan_host(spec(CPU, {"context-checkpoints": 1024, "parallel": 200, "context": 1_000_000}), {"small": PLAIN})
    assert {"context-checkpoints", "parallel"} & set(kinds(many)) or many.fits


def test_nothing_is_offered_against_what_memory_does_not_cure() -> None:
    unknown = {"blackwell": {"model": "no-such-card"}, "ada": REFERENCE["gpus"]["ada"]}
    assert plan(spec(REFERENCE, {"accept-margin": None}, gpus=unknown)).alternatives == ()


def test_the_neighbour_of_a_short_card_is_left_alone() -> None:
    models = {**REFERENCE["models"], "small": CPU["models"]["small"]}
    other = {"model": "small", "gpu": "ada", "context": 4096, "listen": {"port": 8081}}
    base = {**REFERENCE["services"]["chat"]}
    del base["accept-margin"]
    found = plan(spec(REFERENCE, models=models, services={"chat": base, "other": other}))
    assert {each["service"] for each in found.alternatives} == {"chat"}


def test_a_refused_plan_takes_well_under_a_second() -> None:
    plan(REFUSED)
    # As the command does: a test session holds so many objects that looking for cycles takes as long as the plan.
    gc.disable()
    try:
        for service in SHORTAGES:
            started = time.process_time()
            plan(spec(REFERENCE, service))
            assert time.process_time() - started < 0.8
    finally:
        gc.enable()


@given(
    edge=st.integers(0, 2000),
    count=st.integers(1, 2000),
    slope=st.floats(0.01, 50.0),
    jitter=st.lists(st.floats(0.0, 0.9), min_size=8, max_size=8),
)
@settings(max_examples=200, deadline=None)
def test_the_search_finds_the_first_that_fits_in_few_tries(
    edge: int, count: int, slope: float, jitter: list[float]
) -> None:
    tried: list[int] = []

    def judge(at: int) -> Verdict:
        tried.append(at)
        short = (edge - at - 0.5) * slope
        return Verdict(at >= edge, short + jitter[at % 8] * slope * 0.4 * (1 if short > 0 else -1))

    found = first_fitting(count, judge, (edge + 0.5) * slope)
    assert found == (edge if edge < count else None)
    assert len(tried) <= 16


def test_the_search_survives_a_curve_that_is_no_line() -> None:
    def judge(at: int) -> Verdict:
        short = 1e6 / (at + 1) - 1e6 / 778
        return Verdict(short <= 0, short)

    assert first_fitting(1000, judge, 2e6) == 777
    assert first_fitting(0, judge, 1.0) is None
