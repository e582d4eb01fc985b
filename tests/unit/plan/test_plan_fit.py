"""What fits, what does not, by how much, and what would."""

from __future__ import annotations

import time
from typing import Any

import pytest

from llamarig.gguf import Header
from llamarig.plan import Plan, plan_host, plan_json
from llamarig.plan.fit import DAY_OF_REQUESTS, GROWTH_MIB, NO_GRAPHS
from llamarig.spec.host import HostSpec
from tests.support.big_models import header_of, keys, qwen35_27b, small_llama
from tests.support.plan_specs import CPU, REFERENCE, UUIDS, spec

QWEN = header_of(qwen35_27b())
SMALL = small_llama(4096, output=False)


def plan(found: HostSpec, header: Header | None = QWEN, **headers: Header | None) -> Plan:
    return plan_host(found, {"qwen": header, "small": SMALL, **headers})


def codes(found: Plan) -> dict[str, str]:
    return {finding.code: finding.severity for finding in found.findings}


def message(found: Plan, code: str) -> str:
    return next(finding.message for finding in found.findings if finding.code == code)


def test_the_reference_stack_fits_with_a_thin_margin() -> None:
    found = plan(spec(REFERENCE))
    blackwell, ada = found.devices
    assert found.fits
    assert blackwell.gpu == "blackwell"
    assert blackwell.used_mib == pytest.approx(23_952.0, abs=0.1)
    assert ada.services == {"chat": {"projector": pytest.approx(982.0, abs=0.01)}}
    assert codes(found)["thin-margin"] == "warning"
    assert codes(found)["memory-grows"] == "warning"
    assert "the published stack left 515 MiB" in message(found, "thin-margin")
    service = found.services["chat"]
    assert (service.slots, service.context, service.speculative) == (1, 262_144, True)
    assert service.modalities == ("text", "vision")
    assert service.memory_max_mib > found.ram.used_mib


DRAFTING = {
    "speculation": {"type": "draft-mtp", "n-max": 8},
    "accept-margin": None,
    "kv-cache": {"k": "q4_0", "v": "q4_0"},
}


@pytest.mark.parametrize(("context", "severity"), [(225_280, "warning"), (40_960, "note")])
def test_growth_is_a_warning_where_what_is_free_does_not_last_a_day(context: int, severity: str) -> None:
    found = plan(spec(REFERENCE, DRAFTING | {"context": context}))
    assert found.fits
    card = found.devices[0]
    assert card.free_mib > 512, "the margin itself is kept"
    assert (card.free_mib < DAY_OF_REQUESTS * GROWTH_MIB) is (severity == "warning")
    assert codes(found)["memory-grows"] == severity
    assert f"about {int(card.free_mib / GROWTH_MIB):,} requests of chat" in message(found, "memory-grows")


@pytest.mark.parametrize("change", [{"speculation": None}, {"environment": {NO_GRAPHS: "1"}}])
def test_without_drafts_or_without_graphs_nothing_grows(change: dict[str, Any]) -> None:
    assert "memory-grows" not in codes(plan(spec(REFERENCE, DRAFTING | {"context": 225_280} | change)))


def test_without_the_accepted_margin_it_is_refused_with_what_would_fit() -> None:
    found = plan(spec(REFERENCE, {"accept-margin": None}))
    assert not found.fits
    text = message(found, "does-not-fit")
    short = 512 - found.devices[0].free_mib
    assert text.startswith(f"{short:,.0f} MiB short on blackwell")
    assert "weights 15,099, kv-cache 4,608, recurrent-state 1,347" in text
    changes = [entry["change"] for entry in found.alternatives]
    assert changes[:2] == [{"speculation": {"n-max": 4}}, {"context": 243_456}]
    assert [next(iter(change)) for change in changes[2:]] == ["models", "gpu-layers"]


def test_every_alternative_fits_when_it_is_planned() -> None:
    speculation = {"type": "draft-mtp", "n-max": 4, "kv-cache": "q4_0"}
    short: dict[str, Any] = {
        "accept-margin": None,
        "parallel": 2,
        "ubatch": 512,
        "context": 230_000,
        "speculation": speculation,
    }
    found = plan(spec(REFERENCE, short))
    assert not found.fits
    assert [entry["change"] for entry in found.alternatives][:4] == [
        {"speculation": {"kv-cache": "f16"}},
        {"ubatch": 256},
        {"parallel": 1},
        {"speculation": {"n-max": 3}},
    ]
    for entry in found.alternatives:
        change = dict(entry["change"])
        if "speculation" in change:
            change["speculation"] = speculation | change["speculation"]
        if "models" in change:
            continue
        again = plan(spec(REFERENCE, {**short, **change}))
        assert again.fits
        assert entry["free-mib"]["blackwell"] == round(again.devices[0].free_mib, 2)


def test_the_longest_window_is_found_and_one_step_more_does_not_fit() -> None:
    found = plan(spec(REFERENCE, {"accept-margin": None}))
    longest = next(entry["change"]["context"] for entry in found.alternatives if "context" in entry["change"])
    assert plan(spec(REFERENCE, {"accept-margin": None, "context": longest})).fits
    assert not plan(spec(REFERENCE, {"accept-margin": None, "context": longest + 256})).fits


def test_no_window_beyond_the_training_length_is_offered() -> None:
    huge = {"accept-margin": None, "context": 4_000_000, "kv-cache": {"k": "q4_0", "v": "q4_0"}}
    found = plan(spec(REFERENCE, huge))
    assert not found.fits
    offered = [entry["change"]["context"] for entry in found.alternatives if "context" in entry["change"]]
    assert offered
    assert max(offered) <= 262_144


def test_what_a_display_takes_is_not_usable() -> None:
    cards = {"blackwell": {**REFERENCE["gpus"]["blackwell"], "display": True}, "ada": REFERENCE["gpus"]["ada"]}
    assert plan(spec(REFERENCE)).devices[0].usable_mib - plan(spec(REFERENCE, gpus=cards)).devices[0].usable_mib == 512
    reserved = {**cards, "blackwell": {**cards["blackwell"], "reserve-mib": 100}}
    assert (
        plan(spec(REFERENCE)).devices[0].usable_mib - plan(spec(REFERENCE, gpus=reserved)).devices[0].usable_mib == 100
    )


def test_two_services_share_a_card_and_the_bigger_margin_counts() -> None:
    base = REFERENCE["services"]["chat"]
    services = {
        "chat": {**base, "context": 4096},
        "other": {**base, "context": 4096, "margin-mib": 2048, "listen": {"port": 8081}},
    }
    found = plan(spec(REFERENCE, services=services))
    device = found.devices[0]
    assert set(device.services) == {"chat", "other"}
    assert device.margin_mib == 2048
    assert device.used_mib == pytest.approx(sum(sum(terms.values()) for terms in device.services.values()))
    assert not found.fits


def test_ram_is_a_second_budget() -> None:
    assert plan(spec(CPU)).fits
    greedy = plan(spec(CPU, {"cache-ram-mib": 40_000}))
    assert not greedy.fits
    assert codes(greedy)["ram-does-not-fit"] == "error"
    silent = plan(spec(CPU, memory=None))
    assert silent.fits
    assert codes(silent) == {"ram-unknown": "note"}


def test_the_cpu_backend_puts_everything_into_ram() -> None:
    found = plan(spec(CPU))
    assert found.devices == ()
    assert set(found.ram.components) == {"weights", "kv-cache", "compute", "process"}
    assert found.services["chat"].memory_max_mib == pytest.approx(found.ram.used_mib * 1.25, abs=1)


def test_limits_of_the_spec_win() -> None:
    service = plan(spec(CPU, {"memory-max-mib": 5000, "start-timeout-s": 900})).services["chat"]
    assert (service.memory_max_mib, service.start_timeout_s) == (5000, 900)


def test_without_a_header_the_plan_says_so_and_goes_on() -> None:
    found = plan(spec(REFERENCE), None)
    assert found.fits
    assert codes(found)["header-unknown"] == "warning"
    assert found.devices[0].services["chat"]["weights"] == pytest.approx(17_125_207_136 / (1 << 20))
    assert found.services["chat"].memory_max_mib == 0
    assert found.services["chat"].argv


def test_without_header_or_size_nothing_is_invented() -> None:
    models = {"qwen": {**REFERENCE["models"]["qwen"], "size": "unlocked"}}
    models["qwen"]["projector"] = {**models["qwen"]["projector"], "size": "unlocked"}
    found = plan(spec(REFERENCE, models=models), None)
    assert set(found.devices[0].services["chat"]) == {"process"}
    assert codes(found)["projector-size-unknown"] == "warning"


def test_a_projectors_header_says_what_it_sees() -> None:
    composed = keys("clip", {})
    from tests.support import gguf_bytes as raw

    composed.add("clip.has_vision_encoder", raw.BOOL, True).add("clip.has_audio_encoder", raw.BOOL, True)
    found = plan(spec(REFERENCE), QWEN, **{"qwen/projector": header_of(composed)})
    assert found.services["chat"].modalities == ("text", "vision", "audio")


@pytest.mark.parametrize(
    ("service", "top", "code", "severity"),
    [
        ({"gpu": None, "projector-gpu": None}, {}, "no-gpu", "error"),
        ({"context": 1_000_000}, {}, "context-beyond-training", "warning"),
        ({"speculation": None}, {}, "mtp-head-unused", "note"),
        ({"unsafe-args": ["--props"]}, {}, "unsafe-args", "warning"),
        (
            {"listen": {"address": "127.0.0.1", "port": 8080, "keyless": {"reason": "a test of mine"}}},
            {},
            "keyless",
            "note",
        ),
        ({"context": 65_536}, {}, "margin-accepted", "note"),
        ({"kv-cache": {"k": "f16", "v": "q8_0"}, "flash-attention": "off"}, {}, "settings-refused", "error"),
        ({}, {"gpus": {**REFERENCE["gpus"], "ada": {"model": "rtx-2000-ada"}}}, "uuid-unknown", "note"),
        (
            {},
            {"gpus": {**REFERENCE["gpus"], "ada": {"model": "no-such-card", "uuid": UUIDS[1]}}},
            "gpu-unknown",
            "error",
        ),
    ],
)
def test_findings(service: dict[str, Any], top: dict[str, Any], code: str, severity: str) -> None:
    assert code not in codes(plan(spec(REFERENCE)))
    found = plan(spec(REFERENCE, service, **top))
    assert codes(found)[code] == severity
    assert found.fits == (not any(finding.severity == "error" for finding in found.findings))


def test_an_unknown_architecture_needs_an_explicit_reserve() -> None:
    brand_new = header_of(keys("brandnew", {"block_count": 2, "embedding_length": 64, "attention.head_count": 2}))
    service = {"speculation": None}
    refused = plan(spec(REFERENCE, service), brand_new)
    assert codes(refused)["unknown-architecture"] == "error"
    assert not refused.fits
    cards = {name: {**card, "reserve-mib": 4096} for name, card in REFERENCE["gpus"].items()}
    reserved = plan(spec(REFERENCE, service, gpus=cards), brand_new)
    assert codes(reserved)["unknown-architecture"] == "warning"
    assert reserved.fits


def test_an_architecture_whose_compute_nobody_compared_is_noted() -> None:
    other = header_of(keys("stablelm", {"block_count": 2, "embedding_length": 256, "attention.head_count": 2}))
    assert codes(plan(spec(REFERENCE, {"speculation": None}), other))["compute-approximate"] == "note"


def test_the_json_form_is_the_documented_one() -> None:
    data = plan_json(plan(spec(REFERENCE)))
    assert list(data)[:8] == ["host", "fits", "known", "devices", "ram", "services", "findings", "alternatives"]
    device = data["devices"][0]
    assert list(device) == [
        "gpu", "uuid", "total-mib", "usable-mib", "used-mib", "free-mib", "margin-mib", "doubt-mib", "components",
        "services",
    ]  # fmt: skip
    assert device["uuid"] == UUIDS[0]
    assert device["total-mib"] == 24_467.0
    assert device["components"]["compute"] == 1192.27
    assert device["used-mib"] == pytest.approx(sum(device["components"].values()), abs=0.05)
    assert device["free-mib"] == pytest.approx(device["usable-mib"] - device["used-mib"], abs=0.02)
    assert {"total-mib", "used-mib", "components"} <= data["ram"].keys()
    assert data["services"]["chat"]["argv"][0] == "/opt/llamarig/current/bin/llama-server"
    assert data["services"]["chat"]["environment"]["MTMD_BACKEND_DEVICE"] == "CUDA1"
    assert set(data["findings"][0]) == {"code", "severity", "message", "fix"}


def test_a_plan_is_pure_and_quick() -> None:
    found = spec(REFERENCE)
    first = plan(found)
    best = 1.0
    for _ in range(5):
        # Processor time: a plan reads nothing, and other work on the machine is none of its own.
        started = time.process_time()
        again = plan(found)
        best = min(best, time.process_time() - started)
        assert again == first
    assert best < 0.03


def test_an_accepted_margin_does_not_waive_the_neighbours() -> None:
    def services(own: int, accepted: int) -> dict[str, Any]:
        base = {"model": "small", "gpu": "blackwell", "context": 4096}
        accepting = {"margin-mib": accepted, "accept-margin": {"reason": "tried for a week"}, "listen": {"port": 8081}}
        return {"asking": {**base, "margin-mib": own, "listen": {"port": 8080}}, "accepting": {**base, **accepting}}

    models = {"small": {**CPU["models"]["small"]}}

    def planned(own: int, accepted: int) -> Plan:
        return plan(spec(REFERENCE, models=models, services=services(own, accepted)))

    free = int(planned(0, 0).devices[0].free_mib)
    assert codes(planned(free - 1, free + 500))["thin-margin"] == "warning"
    found = planned(free + 100, free + 500)
    assert codes(found)["does-not-fit"] == "error"
    assert f"less a margin of {free + 100:,} leave" in message(found, "does-not-fit")
    assert message(found, "does-not-fit").startswith(("99 MiB short", "100 MiB short"))
    assert not found.fits


def test_a_neighbour_without_a_wish_leaves_the_accepted_margin_alone() -> None:
    found = plan(spec(REFERENCE, services={"chat": REFERENCE["services"]["chat"]}))
    assert codes(found)["thin-margin"] == "warning"


def test_a_limit_below_what_the_service_needs_is_refused_with_numbers() -> None:
    needed = plan(spec(REFERENCE)).ram.used_mib
    low, enough = int(needed) - 10, int(needed) + 1
    found = plan(spec(REFERENCE, {"memory-max-mib": low}))
    assert codes(found)["memory-max-too-small"] == "error"
    assert f"needs {needed:,.0f} MiB of RAM" in message(found, "memory-max-too-small")
    assert f"{low:,}: 11 MiB too few" in message(found, "memory-max-too-small")
    assert "memory-max-too-small" not in codes(plan(spec(REFERENCE, {"memory-max-mib": enough})))
