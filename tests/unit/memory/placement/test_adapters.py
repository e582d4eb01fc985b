"""LoRA adapters: where their bytes lie, and files that are none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llamarig.errors import RigError
from llamarig.gguf import Header
from llamarig.memory import Beside, Settings, estimate
from tests.support import gguf_bytes as raw
from tests.support.big_models import MIB, header_of, keys

ONE = Settings(context=4096)
BASE = header_of(
    keys("llama", {"block_count": 2, "embedding_length": 256, "attention.head_count": 2})
    .tensor("token_embd.weight", "F16", 256, 1000)
    .tensor("output.weight", "F16", 256, 1000)
    .tensor("blk.0.ffn_up.weight", "F16", 256, 4096)
    .tensor("blk.1.ffn_up.weight", "F16", 256, 4096)
)


def adapter(*names: str, architecture: str = "llama", kind: str = "adapter", form: str = "lora") -> Header:
    composed = raw.Composed()
    composed.add("general.architecture", raw.STRING, architecture)
    composed.add("general.type", raw.STRING, kind).add("adapter.type", raw.STRING, form)
    for name in names:
        if name.endswith("_norm.weight"):
            composed.tensor(name, "F32", 256)
        elif name.endswith((".lora_a", ".other")):
            composed.tensor(name, "F32", 256, 16)
        else:
            composed.tensor(name, "F32", 16, 4096)
    return header_of(composed)


def pair(block: int) -> tuple[str, str]:
    return f"blk.{block}.ffn_up.weight.lora_a", f"blk.{block}.ffn_up.weight.lora_b"


HALVES = (256 * 16 + 16 * 4096) * 4 / MIB


def test_each_pair_lies_with_its_base_tensor() -> None:
    beside = Beside(adapters=(adapter(*pair(0), *pair(1), "blk.0.attn_norm.weight"),))
    two = replace(ONE, cards=2, tensor_split=(1.0, 2.0))
    plain, laid = estimate(BASE, two), estimate(BASE, two, beside)
    more = [after["weights"] - before["weights"] for before, after in zip(plain.devices, laid.devices, strict=True)]
    assert more == pytest.approx([HALVES, HALVES])
    in_ram = estimate(BASE, replace(ONE, gpu_layers=1), beside)
    assert in_ram.host["weights"] == pytest.approx(
        estimate(BASE, replace(ONE, gpu_layers=1)).host["weights"] + 2 * HALVES
    )


def test_a_product_is_held_beside_the_weights_own() -> None:
    beside = Beside(adapters=(adapter(*pair(0)),))
    assert estimate(BASE, ONE, beside).device["compute"] - estimate(BASE, ONE).device["compute"] == pytest.approx(
        512 * 4096 * 4 / MIB
    )
    cpu = replace(ONE, backend="cpu")
    assert estimate(BASE, cpu, beside).host["compute"] > estimate(BASE, cpu).host["compute"]


def test_several_adapters_add_up() -> None:
    once = estimate(BASE, ONE, Beside(adapters=(adapter(*pair(0)),))).device["weights"]
    twice = estimate(BASE, ONE, Beside(adapters=(adapter(*pair(0)), adapter(*pair(1))))).device["weights"]
    assert twice - once == pytest.approx(HALVES)


def test_in_tensor_split_every_card_holds_all_of_it() -> None:
    tensor = replace(ONE, cards=2, split_mode="tensor")
    beside = Beside(adapters=(adapter(*pair(0)),))
    plain, laid = estimate(BASE, tensor), estimate(BASE, tensor, beside)
    for before, after in zip(plain.devices, laid.devices, strict=True):
        assert after["weights"] - before["weights"] == pytest.approx(HALVES)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (adapter(*pair(0), kind="model"), "is none"),
        (adapter(*pair(0), form="control-vector"), "is none"),
        (adapter(*pair(0), architecture="qwen3"), "made for 'qwen3'"),
        (adapter(*pair(7)), "no tensor 'blk.7.ffn_up.weight'"),
        (adapter("blk.0.ffn_up.weight.other"), "no half of an adapter"),
        (BASE, "is none"),
    ],
)
def test_another_file_is_refused(wrong: Header, said: str) -> None:
    with pytest.raises(RigError) as caught:
        estimate(BASE, ONE, Beside(adapters=(wrong,)))
    assert said in f"{caught.value.what} {caught.value.why}"
    assert caught.value.fix
