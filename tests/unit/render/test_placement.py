"""What is rendered for models on several cards, adapters and routers."""

from __future__ import annotations

import json
from typing import Any

from llamarig.plan import plan_host
from llamarig.render import wanted_state
from llamarig.render.sandbox import CHILD_PORTS
from llamarig.render.wanted import Wanted
from tests.golden.cases import HERE
from tests.support.plan_specs import CPU, REFERENCE, UUIDS, spec
from tests.support.rendering.systemd_reader import values

FILE: dict[str, Any] = {"host-path": "/srv/x.gguf", "sha256": "unlocked", "size": 1000}
UNIT = "/etc/systemd/system/llama-chat.service"


def wanted(base: dict[str, Any], service: dict[str, Any], **top: Any) -> Wanted:
    found = spec(base, service, **top)
    return wanted_state(found, plan_host(found, {}), HERE)


def files(state: Wanted) -> dict[str, str]:
    return {file.path: file.content for file in state.files}


ROUTER = {"router": {"models": ["small", "other"], "models-max": 2}}
MODELS = CPU["models"] | {"other": FILE | {"projector": FILE | {"host-path": "/srv/mmproj.gguf"}}}


def test_a_routers_models_are_listed_in_a_file_that_restarts_it() -> None:
    state = wanted(CPU, ROUTER, models=MODELS)
    [preset] = [file for file in state.files if file.path == "/etc/llamarig/presets/chat.ini"]
    assert preset.restarts == ("chat",)
    assert preset.content == (
        "; Written by llamarig; edits are found as drift and undone by the next apply.\n"
        "; The models that the router chooses from. What they share is on its command line.\n"
        "version = 1\n"
        "\n[small]\n"
        "model = /var/lib/llamarig/models/small/small.gguf\n"
        "\n[other]\n"
        "model = /var/lib/llamarig/models/other/x.gguf\n"
        "mmproj = /var/lib/llamarig/models/other/mmproj.gguf\n"
        "mmproj-offload = false\n"
    )
    assert ("/etc/llamarig/presets", "0755", "root", "root") in state.directories


def test_a_service_of_one_model_has_no_such_file() -> None:
    state = wanted(CPU, {})
    assert not [file.path for file in state.files if "presets" in file.path]
    assert not [path for path, *_ in state.directories if "presets" in path]


def test_a_routers_children_may_listen_and_others_may_not() -> None:
    routed = values(files(wanted(CPU, ROUTER, models=MODELS))[UNIT], "SocketBindAllow")
    assert routed == ["tcp:8080", f"ipv4:tcp:{CHILD_PORTS}"]
    assert values(files(wanted(CPU, {}))[UNIT], "SocketBindAllow") == ["tcp:8080"]


def test_the_probe_looks_for_every_file_that_is_read() -> None:
    state = wanted(CPU, ROUTER, models=MODELS)
    config = json.loads(files(state)["/etc/llamarig/services/chat.json"])
    assert set(config["files"]) >= {
        "/etc/llamarig/presets/chat.ini",
        "/var/lib/llamarig/models/other/x.gguf",
        "/var/lib/llamarig/models/other/mmproj.gguf",
    }


def test_a_new_adapter_or_model_of_a_router_restarts_the_service() -> None:
    for service in ({"lora": [{"model": "other"}]}, ROUTER):
        state = wanted(CPU, service, models=MODELS)
        assert {model.restarts for model in state.models} == {("chat",)}


def test_a_pattern_that_looks_like_a_flag_is_none() -> None:
    state = wanted(REFERENCE, {"tensor-overrides": ["--offline=CPU"]})
    assert "--offline=CPU" not in state.release.flags
    assert "--override-tensor" in state.release.flags


def test_every_card_of_a_split_model_is_wanted() -> None:
    split = {"gpu": None, "gpus": ["ada", "blackwell"], "split-mode": "layer", "projector-gpu": None}
    state = wanted(REFERENCE, split)
    [service] = state.services
    assert {card.uuid for card in state.cards} == set(UUIDS)
    assert service.gpu_uuid == UUIDS[1]
    assert service.environment["CUDA_VISIBLE_DEVICES"] == f"{UUIDS[1]},{UUIDS[0]}"
