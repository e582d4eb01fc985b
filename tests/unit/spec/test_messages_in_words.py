"""Every pattern and every required key of the models has words, and rules can be told apart by them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from llamarig.catalog.toolkits import older
from llamarig.spec import words
from llamarig.spec.host import HostSpec
from llamarig.spec.keys import opening_flag, planned_flag, unknown_key
from llamarig.spec.read_yaml import read_bytes
from llamarig.spec.rules.network import is_local
from llamarig.spec.unbuilt import refused_by_apply
from llamarig.spec.validate import validate

ROOT = Path(__file__).resolve().parents[3]


def nodes(value: Any) -> list[dict[str, Any]]:
    found = []
    if isinstance(value, dict):
        found.append(value)
        for below in value.values():
            found += nodes(below)
    elif isinstance(value, list):
        for below in value:
            found += nodes(below)
    return found


def test_every_pattern_has_words_and_a_legal_example() -> None:
    schema = HostSpec.model_json_schema()
    patterns = {node["pattern"] for node in nodes(schema) if isinstance(node.get("pattern"), str)}
    assert patterns
    for pattern in patterns - {words._pattern(words.base.Sha256)}:
        _, example = words.PATTERNS[pattern]
        assert re.fullmatch(pattern, example.strip('"')), (pattern, example)


def test_every_required_key_has_an_example() -> None:
    for node in nodes(HostSpec.model_json_schema()):
        for key in node.get("required", []) if isinstance(node.get("required"), list) else []:
            assert words.example(key, "") != f"{key}: …", key


@pytest.mark.parametrize(
    ("loc", "message", "fix"),
    [
        (("services", "a", "Flash_Attention"), "written `flash-attention`", "rename"),
        (("services", "a", "n-gpu-layers"), "another name", "`gpu-layers`"),
        (("services", "a", "--ctx-size"), "another name", "`context`"),
        (("gpus", "a", "index"), "by its index", "bus-id"),
        (("services", "a", "hf-token"), "a secret", "file"),
        (("connection", "password"), "a secret", "become-password-file"),
        (("engine", "bakcend"), "is no key of engine", "did you mean `backend`"),
        (("architectures",), "is no key of a host spec", "belongs in engine"),
        (("services", "a", "zzz"), "is no key of services.a", "the keys here are"),
    ],
)
def test_an_unknown_key_teaches(loc: tuple[str, ...], message: str, fix: str) -> None:
    found = unknown_key(loc)
    assert message in found[0]
    assert fix in found[1]


def test_raw_arguments_are_recognised_by_their_flag() -> None:
    assert opening_flag("--tools") is not None
    assert opening_flag("--media-path=/") is not None
    assert opening_flag("tools") is None
    assert opening_flag("--temp") is None
    assert planned_flag("--port=1") == "listen: {port: …}"
    assert planned_flag("-c") == "context"
    assert planned_flag("--no-metrics") == "metrics"
    assert planned_flag("--threads=4") == "threads"
    assert planned_flag("--verbose-prompt") is None
    assert planned_flag("port") is None


def test_versions_and_addresses_compare_by_value() -> None:
    assert older("9.10", "10.2")
    assert not older("570.10", "570")
    assert is_local("127.0.0.53")
    assert is_local("::1")
    assert is_local("/run/x/y.sock")
    assert not is_local("::")
    assert not is_local("localhost")


def load(text: str) -> Any:
    tree, problems = read_bytes(text.encode(), Path("spec.yml"))
    assert tree is not None
    assert problems == []
    return validate(tree, Path())


def test_apply_refuses_by_name_what_is_planned_only_and_what_is_unlocked() -> None:
    spec = load((ROOT / "inventory/dual-gpu-256k.yml").read_text()).spec
    refused = refused_by_apply(spec)
    told = " ".join(error.what for error in refused)
    for name in ("`driver`", "`cuda.sha256`", "`engine.patches[0].head`", "`models.qwen.sha256`"):
        assert name in told
    assert all(error.fix and error.where == "dual-gpu-256k" for error in refused)


def test_apply_refuses_nothing_of_a_pinned_cpu_host() -> None:
    assert refused_by_apply(load((ROOT / "inventory/demo.yml").read_text()).spec) == []


def test_cuda_needs_a_toolkit_that_is_there() -> None:
    text = (ROOT / "inventory/rtx-4090.yml").read_text()
    without = re.sub(r"cuda: .*\n", "", text)
    assert any("without a toolkit" in error.what for error in refused_by_apply(load(without).spec))
    there = re.sub(
        r"cuda: .*\n", "cuda: {source: directory, version: 12.9.86, location: /srv/cuda, sha256: unlocked}\n", text
    )
    told = " ".join(error.what for error in refused_by_apply(load(there).spec))
    assert "without a toolkit" not in told
    assert "driver" in told


def test_a_finding_that_rests_on_a_broken_value_is_not_said() -> None:
    text = (ROOT / "inventory/rtx-4090.yml").read_text()
    messages = [error.message for error in load(text.replace("gpu: upper", "gpu: 0")).errors]
    assert len(messages) == 1
    assert "by its index" in messages[0]
    backend = [error.message for error in load(text.replace("backend: cuda", "backend: cude")).errors]
    assert len(backend) == 1
    cards = load(json.dumps({"schema-version": 1})).errors
    assert {error.message for error in cards} == {
        f"`{key}` is missing" for key in ("host", "os", "engine", "models", "services")
    }
