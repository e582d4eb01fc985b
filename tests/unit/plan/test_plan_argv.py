"""Arguments and environment: all of them explicit, and every flag one that the engine knows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from llamarig.plan.argv import argv
from llamarig.plan.environment import environment
from llamarig.spec.host import HostSpec
from tests.support.plan_specs import CPU, REFERENCE, UUIDS, spec

HELP = (Path(__file__).parents[2] / "fixtures" / "llama-server-help-b10454.txt").read_text()
"""Recorded; its first line says from what."""


COLUMN = 40
"""Where the help's descriptions begin; flags that reach further have their line to themselves."""


def known_flags() -> dict[str, str]:
    """Each flag of the help with the text that describes it."""
    flags: dict[str, str] = {}
    current: list[str] = []
    for line in HELP.splitlines():
        if re.match(r"-{1,2}[A-Za-z]", line):
            head = line[:COLUMN] if line[COLUMN - 1 : COLUMN] == " " else line
            current = re.findall(r"(?<![\w<|-])--?[A-Za-z][\w.-]*", head)
        for flag in current:
            flags[flag] = flags.get(flag, "") + line + "\n"
    return flags


KNOWN = known_flags()


def value(words: tuple[str, ...], flag: str) -> str | None:
    return words[words.index(flag) + 1] if flag in words else None


def words_of(base: dict[str, Any], **service: Any) -> tuple[str, ...]:
    found = spec(base, {key.replace("_", "-"): item for key, item in service.items()})
    return argv(found, "chat")


VARIANTS: list[HostSpec] = [
    spec(CPU),
    spec(REFERENCE),
    spec(REFERENCE, {"projector-gpu": None, "gpu-layers": 30, "kv-unified": True, "parallel": 3}),
    spec(CPU, {"listen": {"address": "/run/llama-chat/s.sock"}, "jinja": False, "metrics": False}),
    spec(CPU, {"listen": {"port": 1, "tls": {"certificate": "/etc/c.pem", "key": "/etc/k.pem"}}}),
    spec(CPU, {"listen": {"port": 1, "keyless": {"reason": "only this host"}}}),
    spec(CPU, {"listen": {"port": 1, "cors-origins": ["https://a.example", "https://b.example"]}}),
    spec(CPU, {"sampling": {"temperature": 0.1, "top-p": 0.5, "top-k": 3, "min-p": 0.01, "presence-penalty": 1.0,
                            "repeat-penalty": 1.1, "seed": 7}}),
    spec(CPU, {"sampling": "non-thinking", "chat-template": "templates/x.jinja", "reasoning": "off",
               "reasoning-preserve": False}),
    spec(CPU, {"speculation": {"type": "ngram-mod", "n-max": 32}}),
    spec(CPU, {"speculation": {"type": "ngram-simple"}}),
    spec(CPU, {"speculation": {"type": "draft-model", "model": "small"}}),
    spec(REFERENCE, {"speculation": {"type": "draft-model", "model": "qwen", "gpu": "ada"}}),
    spec(REFERENCE, {"speculation": {"type": "dflash", "model": "qwen"}}),
    spec(REFERENCE, {"gpu": None, "gpus": ["blackwell", "ada"], "split-mode": "layer", "projector-gpu": None,
                     "tensor-overrides": ["ffn_down=ada", "ffn_up=CPU"], "experts-on-cpu": 3}),
    spec(REFERENCE, {"gpu": None, "gpus": ["ada", "blackwell"], "split-mode": "tensor", "projector-gpu": None,
                     "tensor-split": [1.5, 1.0], "experts-on-cpu": "all"}),
    spec(CPU, {"lora": [{"model": "small", "scale": -0.5}, {"model": "small"}]}),
    spec(CPU, {"router": {"models": ["small"], "models-max": 1}}),
    *(spec(CPU, {"load-mode": mode, "flash-attention": flash}) for mode, flash in (
        ("auto", "auto"), ("none", "off"), ("mlock", "on"), ("dio", "on"))),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(VARIANTS)))
def test_every_flag_is_in_the_engines_help_and_not_on_its_way_out(number: int) -> None:
    words = argv(VARIANTS[number], "chat")
    flags = [word for word in words[1:] if word.startswith("--")]
    assert flags
    for flag in flags:
        assert flag in KNOWN, flag
        assert "has been removed" not in KNOWN[flag], flag
        assert "DEPRECATED" not in KNOWN[flag], flag
    assert len(flags) == len(set(flags)), "a flag is passed twice"


def test_the_help_check_would_catch_a_wrong_flag() -> None:
    assert "--draft-max" in KNOWN
    assert "has been removed" in KNOWN["--draft-max"]
    assert "DEPRECATED" in KNOWN["--mlock"]
    assert "--no-such-flag" not in KNOWN


def test_the_reference_stack_says_what_its_model_card_says() -> None:
    words = argv(spec(REFERENCE), "chat")
    assert words[0] == "/opt/llamarig/current/bin/llama-server"
    expected = {
        "--model": "/var/lib/llamarig/models/qwen/Qwen3.8-27B.gguf",
        "--mmproj": "/var/lib/llamarig/models/qwen/mmproj-F16.gguf",
        "--ctx-size": "262144",
        "--ctx-checkpoints": "4",
        "--spec-draft-n-max": "8",
        "--spec-draft-n-min": "0",
        "--spec-draft-p-min": "0.0",
        "--spec-draft-type-k": "f16",
        "--spec-draft-type-v": "f16",
        "--spec-type": "draft-mtp",
        "--cache-type-k": "q4_0",
        "--cache-type-v": "q4_0",
        "--device": "CUDA0",
        "--n-gpu-layers": "all",
        "--fit": "off",
        "--parallel": "1",
        "--flash-attn": "on",
        "--batch-size": "512",
        "--ubatch-size": "256",
        "--image-min-tokens": "1024",
        "--threads": "8",
        "--cache-ram": "0",
        "--load-mode": "mmap",
        "--temp": "1.0",
        "--top-p": "0.95",
        "--top-k": "20",
        "--api-key-file": "/run/credentials/llama-chat.service/keys",
        "--host": "127.0.0.1",
        "--port": "8080",
        "--alias": "qwen",
    }
    assert {flag: value(words, flag) for flag in expected} == expected
    for flag in ("--spec-default", "--reasoning-preserve", "--jinja", "--metrics", "--offline", "--no-ui"):
        assert flag in words
    assert "--no-kv-unified" in words


def test_the_cards_are_bound_by_uuid_in_the_order_of_the_arguments() -> None:
    assert environment(spec(REFERENCE), "chat") == {
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": ",".join(UUIDS),
        "MTMD_BACKEND_DEVICE": "CUDA1",
        "GGML_CUDA_GRAPH_OPT": "1",
        "LLAMA_SPEC_CHAIN": "1",
    }


def test_a_projector_on_the_models_card_needs_no_variable() -> None:
    found = environment(spec(REFERENCE, {"projector-gpu": None}), "chat")
    assert found["CUDA_VISIBLE_DEVICES"] == UUIDS[0]
    assert "MTMD_BACKEND_DEVICE" not in found


def test_a_card_without_a_uuid_is_never_left_to_chance() -> None:
    cards = {name: {"model": "rtx-2000-ada", "bus-id": f"0{n}:00.0"} for n, name in ((1, "blackwell"), (2, "ada"))}
    unknown = spec(REFERENCE, gpus=cards)
    assert environment(unknown, "chat")["CUDA_VISIBLE_DEVICES"] == "unlearned:blackwell,unlearned:ada"
    told = {name: {**card, "uuid": uuid} for (name, card), uuid in zip(cards.items(), UUIDS, strict=True)}
    assert environment(spec(REFERENCE, gpus=told), "chat")["CUDA_VISIBLE_DEVICES"] == ",".join(UUIDS)


def test_a_drafter_on_the_other_card_is_placed_there() -> None:
    found = spec(REFERENCE, {"projector-gpu": None, "speculation": {"type": "dflash", "model": "qwen", "gpu": "ada"}})
    words = argv(found, "chat")
    assert value(words, "--spec-draft-device") == "CUDA1"
    assert environment(found, "chat")["CUDA_VISIBLE_DEVICES"] == ",".join(UUIDS)


def test_the_cpu_backend_offloads_nothing_and_sets_nothing() -> None:
    words = argv(spec(CPU), "chat")
    assert value(words, "--device") == "none"
    assert "--n-gpu-layers" not in words
    assert environment(spec(CPU), "chat") == {}
    assert value(words, "--model") == "/var/lib/llamarig/models/small/small.gguf"


def test_a_socket_has_no_port() -> None:
    words = words_of(CPU, listen={"address": "/run/llama-chat/s.sock"})
    assert value(words, "--host") == "/run/llama-chat/s.sock"
    assert "--port" not in words


def test_without_keys_no_page_of_another_origin_may_ask() -> None:
    keyless = {"reason": "only this host"}
    words = words_of(CPU, listen={"port": 1, "keyless": keyless})
    assert "--api-key-file" not in words
    assert value(words, "--cors-origins") == "localhost"
    own = words_of(CPU, listen={"port": 1, "keyless": keyless, "cors-origins": ["https://a.example"]})
    assert value(own, "--cors-origins") == "https://a.example"


def test_certificates_come_as_credentials() -> None:
    words = words_of(CPU, listen={"port": 1, "tls": {"certificate": "/etc/c.pem", "key": "/etc/k.pem"}})
    assert value(words, "--ssl-cert-file") == "/run/credentials/llama-chat.service/tls-cert"
    assert value(words, "--ssl-key-file") == "/run/credentials/llama-chat.service/tls-key"


def test_n_gram_lengths_are_the_engines_own_unless_given() -> None:
    assert value(words_of(CPU, speculation={"type": "ngram-mod"}), "--spec-ngram-mod-n-max") is None
    assert value(words_of(CPU, speculation={"type": "ngram-mod", "n-max": 32}), "--spec-ngram-mod-n-max") == "32"


def test_free_text_is_one_word_whatever_it_holds() -> None:
    alias = "a model, 50% \"off\" $HOME 'ß' --host"
    assert value(words_of(CPU, alias=alias), "--alias") == alias


def test_raw_arguments_come_last() -> None:
    assert words_of(CPU, **{"unsafe-args": ["--props", "--slot-save-path", "/x"]})[-3:] == (
        "--props", "--slot-save-path", "/x",
    )  # fmt: skip
