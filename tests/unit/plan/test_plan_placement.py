"""Models over several cards, in RAM, with adapters, drafters and routers: memory per card, arguments, environment."""

from __future__ import annotations

from typing import Any

import pytest

from llamarig.gguf import Header
from llamarig.memory.process import CUDA_RESIDUE_MIB, SEVERAL_RESIDUES_MIB
from llamarig.plan import Plan, plan_host
from llamarig.plan.argv import argv
from llamarig.plan.environment import environment
from llamarig.spec.host import HostSpec
from tests.support import gguf_bytes as raw
from tests.support.big_models import header_of, keys, qwen35_27b
from tests.support.plan_specs import REFERENCE, UUIDS, spec

QWEN = header_of(qwen35_27b())
PAIR: dict[str, Any] = {
    "gpu": None,
    "gpus": ["blackwell", "ada"],
    "split-mode": "layer",
    "projector-gpu": None,
    "context": 32_768,
    "environment": None,
}


def small() -> Header:
    composed = keys("llama", {"block_count": 4, "embedding_length": 512, "attention.head_count": 8})
    composed.tensor("token_embd.weight", "F16", 512, 1000).tensor("output.weight", "F16", 512, 1000)
    for block in range(4):
        composed.tensor(f"blk.{block}.ffn_up.weight", "F16", 512, 4096)
    return header_of(composed)


def adapter() -> Header:
    composed = raw.Composed().add("general.architecture", raw.STRING, "llama")
    composed.add("general.type", raw.STRING, "adapter").add("adapter.type", raw.STRING, "lora")
    composed.tensor("blk.0.ffn_up.weight.lora_a", "F32", 512, 1024)
    return header_of(composed.tensor("blk.0.ffn_up.weight.lora_b", "F32", 1024, 4096))


HEADERS = {"qwen": QWEN, "small": small(), "adapter": adapter()}
FILE: dict[str, Any] = {"host-path": "/srv/x.gguf", "sha256": "unlocked", "size": 1000}
MODELS = REFERENCE["models"] | {"small": FILE, "adapter": {**FILE, "host-path": "/srv/adapter.gguf"}}


def found(service: dict[str, Any] | None = None, **top: Any) -> HostSpec:
    return spec(REFERENCE, service, models=MODELS, **top)


def plan(service: dict[str, Any] | None = None, **top: Any) -> Plan:
    return plan_host(found(service, **top), HEADERS, with_alternatives=False)


def terms(planned: Plan, service: str = "chat") -> list[dict[str, float]]:
    return [device.services.get(service, {}) for device in planned.devices]


def codes(planned: Plan) -> list[str]:
    return [finding.code for finding in planned.findings]


def value(spec_of: HostSpec, flag: str) -> str | None:
    words = argv(spec_of, "chat")
    return words[words.index(flag) + 1] if flag in words else None


def test_layers_go_by_usable_memory_unless_the_spec_says_otherwise() -> None:
    usable = [device.usable_mib for device in plan(PAIR).devices]
    shares = [float(share) for share in str(value(found(PAIR), "--tensor-split")).split(",")]
    assert shares == [float(int(mib)) for mib in usable]
    assert value(found(PAIR | {"tensor-split": [3.0, 1.0]}), "--tensor-split") == "3,1"
    assert value(found(PAIR | {"split-mode": "tensor"}), "--tensor-split") == "1,1"


def test_the_plan_splits_as_the_arguments_say() -> None:
    first, second = terms(plan(PAIR | {"tensor-split": [3.0, 1.0]}))
    # 66 parts with the MTP head and the output: 50 on the first card, 12 of the 16 layers with attention among them.
    assert first["kv-cache"] == pytest.approx(3 * second["kv-cache"])
    assert "draft-kv-cache" in second
    assert "draft-kv-cache" not in first
    assert (first["process"], second["process"]) == SEVERAL_RESIDUES_MIB


def test_a_split_model_sees_its_cards_in_the_specs_order() -> None:
    turned = PAIR | {"gpus": ["ada", "blackwell"]}
    assert environment(found(turned), "chat")["CUDA_VISIBLE_DEVICES"] == ",".join(reversed(UUIDS))
    words = {flag: value(found(turned), flag) for flag in ("--device", "--split-mode", "--n-gpu-layers", "--fit")}
    assert words == {"--device": "CUDA0,CUDA1", "--split-mode": "layer", "--n-gpu-layers": "all", "--fit": "off"}


def test_one_card_is_given_no_split() -> None:
    assert value(found(), "--device") == "CUDA0"
    for flag in ("--split-mode", "--tensor-split", "--override-tensor", "--n-cpu-moe", "--cpu-moe", "--lora-scaled"):
        assert flag not in argv(found(), "chat")


def test_a_pipeline_that_does_not_fit_is_given_up_as_the_server_does() -> None:
    wide = PAIR | {"context": 262_144, "ubatch": 1024, "batch": 1024, "tensor-split": [1.0, 1.0]}
    given_up = plan(wide)
    assert "pipeline-given-up" in codes(given_up)
    assert "pipeline-given-up" not in codes(plan(PAIR))
    message = next(each.message for each in given_up.findings if each.code == "pipeline-given-up")
    assert "service chat" in message


def test_layers_and_experts_in_ram_are_counted_there() -> None:
    whole, partly = plan({"context": 32_768}), plan({"context": 32_768, "gpu-layers": 30})
    moved = terms(whole)[0]["weights"] - terms(partly)[0]["weights"]
    assert moved > 1000
    assert partly.ram.services["chat"]["weights"] - whole.ram.services["chat"]["weights"] == pytest.approx(
        moved, abs=0.1
    )
    assert partly.ram.services["chat"]["kv-cache"] > 0
    assert value(found({"experts-on-cpu": 7}), "--n-cpu-moe") == "7"
    assert "--cpu-moe" in argv(found({"experts-on-cpu": "all"}), "chat")


def test_a_tensors_place_is_named_by_card_and_passed_by_number() -> None:
    service = PAIR | {"tensor-overrides": ["attn_output=ada", "ffn_down=CPU", r"blk\.1\.=blackwell"]}
    assert value(found(service), "--override-tensor") == r"attn_output=CUDA1,ffn_down=CPU,blk\.1\.=CUDA0"
    moved = plan(service)
    assert moved.ram.services["chat"]["weights"] > plan(PAIR).ram.services["chat"]["weights"] + 1000


def test_an_adapter_is_laid_on_and_counted() -> None:
    service = {"model": "small", "projector-gpu": None, "speculation": None, "context": 4096, "image-min-tokens": None}
    lora = service | {"lora": [{"model": "adapter", "scale": 0.5}]}
    assert value(found(lora), "--lora-scaled") == "/var/lib/llamarig/models/adapter/adapter.gguf:0.5"
    more = terms(plan(lora))[0]["weights"] - terms(plan(service))[0]["weights"]
    assert more == pytest.approx((512 * 1024 + 1024 * 4096) * 4 / (1 << 20))
    assert plan(lora).services["chat"].files == ("/var/lib/llamarig/models/adapter/adapter.gguf",)
    without = plan_host(found(lora), HEADERS | {"adapter": None}, with_alternatives=False)
    assert "header-unknown" in codes(without)


def test_a_drafter_on_a_card_of_its_own_has_a_process_share_there() -> None:
    drafting = {"projector-gpu": None, "context": 32_768, "speculation": {"type": "draft-model", "model": "small"}}
    beside = plan(drafting)
    apart = plan(drafting | {"speculation": {"type": "draft-model", "model": "small", "gpu": "ada"}})
    assert {"draft-weights", "draft-kv-cache", "draft-compute"} <= terms(beside)[0].keys()
    assert terms(beside)[1] == {}
    assert set(terms(apart)[1]) == {"draft-weights", "draft-kv-cache", "draft-compute", "process"}
    assert not {"draft-weights", "draft-kv-cache", "draft-compute"} & terms(apart)[0].keys()
    assert terms(apart)[1]["draft-kv-cache"] == terms(beside)[0]["draft-kv-cache"]


def test_the_drafters_card_comes_before_the_projectors() -> None:
    gpus = REFERENCE["gpus"] | {"third": {"model": "rtx-4090", "bus-id": "03:00.0", "uuid": UUIDS[0][:-1] + "9"}}
    service = {"projector-gpu": "third", "speculation": {"type": "dflash", "model": "small", "gpu": "ada"}}
    shown = found(service, gpus=gpus)
    variables = environment(shown, "chat")
    assert variables["CUDA_VISIBLE_DEVICES"].split(",") == [*UUIDS, gpus["third"]["uuid"]]
    assert variables["MTMD_BACKEND_DEVICE"] == "CUDA2"
    assert value(shown, "--spec-draft-device") == "CUDA1"
    devices = terms(plan(service, gpus=gpus))
    assert set(devices[2]) == {"projector"}


ROUTED: dict[str, Any] = {
    "context": 32_768,
    "speculation": None,
    "router": {"models": ["qwen", "small"], "models-max": 1},
}


def test_a_router_has_a_share_of_its_own_and_room_for_the_biggest_models() -> None:
    alone = terms(plan({"context": 32_768, "speculation": None}))[0]
    one, two = plan(ROUTED), plan(ROUTED | {"router": {"models": ["qwen", "small"], "models-max": 2}})
    share = SEVERAL_RESIDUES_MIB[0]
    assert terms(one)[0]["weights"] == alone["weights"]
    assert terms(one)[0]["process"] == pytest.approx(share + CUDA_RESIDUE_MIB)
    assert terms(two)[0]["process"] == pytest.approx(share + 2 * CUDA_RESIDUE_MIB)
    assert terms(two)[0]["weights"] > alone["weights"]
    assert terms(two)[0]["kv-cache"] == pytest.approx(alone["kv-cache"] + 4 * 32_768 * 512 * 4 * 9 / 32 / (1 << 20))
    assert two.ram.used_mib > one.ram.used_mib


def test_a_router_takes_its_models_from_a_file() -> None:
    words = argv(found(ROUTED), "chat")
    assert words[1:5] == ("--models-preset", "/etc/llamarig/presets/chat.ini", "--models-max", "1")
    for flag in ("--model", "--alias", "--mmproj", "--mmproj-offload"):
        assert flag not in words
    first, second = plan(ROUTED).services["chat"].presets
    assert (first.model, second.model) == ("qwen", "small")
    assert dict(first.arguments) == {
        "model": "/var/lib/llamarig/models/qwen/Qwen3.8-27B.gguf",
        "mmproj": "/var/lib/llamarig/models/qwen/mmproj-F16.gguf",
        "mmproj-offload": "true",
    }
    assert dict(second.arguments) == {"model": "/var/lib/llamarig/models/small/x.gguf"}
    assert environment(found(ROUTED), "chat")["MTMD_BACKEND_DEVICE"] == "CUDA1"


def test_a_router_whose_model_has_no_header_says_so_of_that_model() -> None:
    planned = plan_host(found(ROUTED), HEADERS | {"small": None}, with_alternatives=False)
    said = [each.message for each in planned.findings if each.code == "header-unknown"]
    assert len(said) == 1
    assert "model small" in said[0]
    assert planned.services["chat"].memory_max_mib == 0


def test_without_a_header_a_file_is_shared_out_over_the_cards() -> None:
    planned = plan_host(found(PAIR | {"tensor-split": [3.0, 1.0]}), HEADERS | {"qwen": None}, with_alternatives=False)
    first, second = terms(planned)
    assert first["weights"] == pytest.approx(3 * second["weights"])
    assert first["weights"] + second["weights"] == pytest.approx(17_125_207_136 / (1 << 20))


def test_several_services_on_one_card_are_summed_each_with_its_process() -> None:
    base = REFERENCE["services"]["chat"] | {"context": 4096, "speculation": None}
    services = {"chat": base, "other": base | {"listen": {"port": 8081}}}
    device = plan(services=services).devices[0]
    assert device.components["process"] == pytest.approx(2 * CUDA_RESIDUE_MIB)


def test_settings_that_the_engine_refuses_are_a_finding() -> None:
    uncut = header_of(keys("lfm2", {"block_count": 2, "embedding_length": 256, "attention.head_count": 2}))
    service = PAIR | {"split-mode": "tensor", "speculation": None}
    planned = plan_host(found(service), HEADERS | {"qwen": uncut}, with_alternatives=False)
    assert "settings-refused" in codes(planned)
    assert not planned.fits


def test_a_projector_whose_encoder_is_known_is_counted_with_its_buffers() -> None:
    known = header_of(
        raw.Composed()
        .add("general.architecture", raw.STRING, "clip")
        .add("clip.projector_type", raw.STRING, "qwen3vl_merger")
        .add("clip.vision.embedding_length", raw.U32, 1152)
        .add("clip.vision.feed_forward_length", raw.U32, 4304)
        .add("clip.vision.attention.head_count", raw.U32, 16)
        .add("clip.vision.patch_size", raw.U32, 16)
        .add("clip.vision.image_size", raw.U32, 768)
        .add("clip.vision.projection_dim", raw.U32, 5120)
    )
    headers = HEADERS | {"qwen/projector": known}

    def planned(service: dict[str, Any] | None = None) -> Plan:
        return plan_host(found(service), headers, with_alternatives=False)

    apart = terms(planned())[1]
    assert apart["projector"] == pytest.approx(927_607_488 / (1 << 20) + 248.10, abs=0.01)
    assert apart["process"] == SEVERAL_RESIDUES_MIB[1]
    assert planned().ram.services["chat"]["projector"] == pytest.approx(24.93, abs=0.01)
    beside = terms(planned({"projector-gpu": None}))[0]
    assert beside["projector"] == apart["projector"]
    assert beside["process"] == CUDA_RESIDUE_MIB
    assert terms(planned({"image-max-tokens": 4096}))[1]["projector"] > apart["projector"] + 200
