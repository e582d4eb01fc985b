"""Which layers slide, keep K and V, a state or an indexer, for each way the engine has of laying them out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from llamarig.gguf import Header
from llamarig.memory import Shape, read_shape
from tests.support import gguf_bytes as raw
from tests.support.big_models import header_of

Value = int | bool | Sequence[int] | Sequence[bool]


def model(arch: str, layers: int = 8, tensors: Sequence[str] = (), **changed: Value) -> Header:
    """A header with ``changed`` keys; a double underscore stands for a dot."""
    values: Mapping[str, Value] = {
        "block_count": layers,
        "embedding_length": 256,
        "feed_forward_length": 512,
        "context_length": 4096,
        "attention.head_count": 4,
        "attention.head_count_kv": 2,
    } | {key.replace("__", "."): value for key, value in changed.items()}
    composed = raw.Composed().add("general.architecture", raw.STRING, arch)
    for key, value in values.items():
        name = f"{arch}.{key}"
        if isinstance(value, Sequence):
            kind = raw.BOOL if isinstance(value[0], bool) else raw.I32
            composed.pairs.append(raw.array(name, kind, list(value)))
        else:
            composed.add(name, raw.U32, int(value))
    composed.tensor("token_embd.weight", "F32", 256, 16)
    for tensor in tensors:
        composed.tensor(tensor, "F32", 256, 1)
    return header_of(composed)


def marks(shape: Shape, mark: str) -> str:
    """One letter a layer: x where it is so."""
    return "".join("x" if getattr(layer, mark) else "." for layer in shape.layers)


@pytest.mark.parametrize(
    ("arch", "keys", "expected"),
    [
        ("gemma2", {}, "x.x.x.x."),
        ("gemma3", {"attention__sliding_window": 512}, "xxxxx.xx"),
        ("gemma3", {}, "........"),
        ("gemma3", {"attention__sliding_window": 512, "attention__sliding_window_pattern": 2}, "x.x.x.x."),
        # A list is ignored where the engine reads one number.
        ("gemma3", {"attention__sliding_window": 512, "attention__sliding_window_pattern": [True] * 8}, "xxxxx.xx"),
        ("gemma3n", {"attention__sliding_window": 512}, "xxxx.xxx"),
        ("gpt-oss", {"attention__sliding_window": 128}, "x.x.x.x."),
        ("cohere2", {"attention__sliding_window": 4096}, "xxx.xxx."),
        ("cohere2moe", {"attention__sliding_window": 4096}, ".xxx.xxx"),
        (
            "cohere2moe",
            {"attention__sliding_window": 64, "attention__sliding_window_pattern": [False] * 7 + [True]},
            ".......x",
        ),
        ("llama4", {}, "xxx.xxx."),
        ("llama4", {"attention__sliding_window": 0}, "........"),
        ("smallthinker", {"attention__sliding_window": 64}, ".xxx.xxx"),
        ("smallthinker", {}, "........"),
        ("plamo3", {"attention__sliding_window": 64}, "xxxxxxx."),
        ("phi3", {"attention__sliding_window": 64}, "........"),
        ("exaone4", {}, "........"),
        (
            "gemma4",
            {"attention__sliding_window": 64, "attention__sliding_window_pattern": [True, False] * 4},
            "x.x.x.x.",
        ),
        (
            "step35",
            {"attention__sliding_window": 64, "attention__sliding_window_pattern": [True, False] * 4},
            "x.x.x.x.",
        ),
        ("lfm2", {"attention__head_count_kv": [0, 2] * 4, "attention__sliding_window": 64}, ".x.x.x.x"),
        ("lfm2moe", {"attention__head_count_kv": [0, 2] * 4, "attention__sliding_window": 64}, "........"),
        ("llama", {"attention__sliding_window": 64}, "........"),
    ],
)
def test_sliding_layers(arch: str, keys: dict[str, Value], expected: str) -> None:
    assert marks(read_shape(model(arch, **keys)), "sliding") == expected


@pytest.mark.parametrize(
    ("arch", "keys", "window"),
    [("llama4", {}, 8192), ("smallthinker", {"attention__sliding_window": 64}, 4096), ("gemma2", {}, 4096)],
)
def test_windows_that_the_engine_sets_itself(arch: str, keys: dict[str, Value], window: int) -> None:
    assert read_shape(model(arch, **keys)).window == window


def test_exaone4_slides_in_its_size_of_64_layers_only() -> None:
    assert marks(read_shape(model("exaone4", layers=64)), "sliding") == "xxx." * 16


@pytest.mark.parametrize(
    ("arch", "keys", "states"),
    [
        ("qwen35", {}, "xxx.xxx."),
        ("qwen35", {"nextn_predict_layers": 1}, "xxx.xxx."),
        ("qwen35", {"attention__recurrent_layers": [True] * 7 + [False]}, "xxxxxxx."),
        ("minimax-01", {}, "xxxxxxx."),
        ("granitehybrid", {"attention__head_count_kv": [0, 0, 2, 0] * 2}, "xx.xxx.x"),
        ("kimi-linear", {"attention__head_count_kv": [0, 0, 0, 1] * 2, "attention__key_length_mla": 64}, "xxx.xxx."),
        (
            "nemotron_h",
            {"attention__head_count_kv": [0, 0, 2, 0] * 2, "feed_forward_length": [0, 9, 0, 0] * 2},
            "x..xx..x",
        ),
        ("falcon-h1", {}, "xxxxxxxx"),
        ("mamba2", {"attention__head_count": 0, "attention__head_count_kv": 0}, "xxxxxxxx"),
        ("rwkv7", {"attention__head_count": 0, "attention__head_count_kv": 0}, "xxxxxxxx"),
    ],
)
def test_layers_with_a_state(arch: str, keys: dict[str, Value], states: str) -> None:
    assert marks(read_shape(model(arch, **keys)), "recurrent") == states


@pytest.mark.parametrize(
    ("arch", "keys", "kept"),
    [
        ("falcon-h1", {}, "xxxxxxxx"),
        (
            "nemotron_h",
            {"attention__head_count_kv": [0, 0, 2, 0] * 2, "feed_forward_length": [0, 9, 0, 0] * 2},
            "..x...x.",
        ),
        ("gemma4", {"attention__shared_kv_layers": 3, "attention__sliding_window_pattern": [True] * 8}, "xxxxx..."),
        ("gemma4-assistant", {"nextn_predict_layers": 8, "attention__sliding_window_pattern": [True] * 8}, "........"),
        ("bert", {}, "........"),
        ("deci", {"attention__head_count_kv": [2, 0] * 4}, "x.x.x.x."),
    ],
)
def test_layers_with_k_and_v(arch: str, keys: dict[str, Value], kept: str) -> None:
    assert marks(read_shape(model(arch, **keys)), "k_width") == kept


def test_gemma3n_keeps_its_first_twenty_layers() -> None:
    assert (
        marks(read_shape(model("gemma3n", layers=30, attention__sliding_window=64)), "k_width") == "x" * 20 + "." * 10
    )


@pytest.mark.parametrize(
    ("arch", "keys", "indexed"),
    [
        ("deepseek32", {"nextn_predict_layers": 1}, "xxxxxxx."),
        ("glm-dsa", {}, "xxxxxxxx"),
        ("glm-dsa", {"context_length": 1 << 20}, "xxx...x."),
        ("glm-dsa", {"attention__indexer__types": [1, 0] * 4}, "x.x.x.x."),
        ("minimax-m3", {"leading_dense_block_count": 3}, "...xxxxx"),
        ("deepseek2", {}, "........"),
    ],
)
def test_layers_with_an_indexer(arch: str, keys: dict[str, Value], indexed: str) -> None:
    header = model(arch, attention__indexer__key_length=128, **keys)
    assert marks(read_shape(header), "index_k") == indexed


def test_heads_of_a_model_whose_first_layer_has_none_are_unknown_to_the_engine_too() -> None:
    shape = read_shape(model("granitehybrid", attention__head_count=[0, 4] * 4, attention__head_count_kv=[0, 2] * 4))
    assert marks(shape, "k_width") == "........"


def test_deepseek4_has_an_mtp_head_only_with_its_tensor() -> None:
    keys = {"nextn_predict_layers": 1, "attention__sliding_window": 128, "attention__compress_ratios": [0] * 8}
    assert not read_shape(model("deepseek4", **keys)).mtp_layers
    assert len(read_shape(model("deepseek4", tensors=["blk.7.nextn.eh_proj.weight"], **keys)).mtp_layers) == 1


@pytest.mark.parametrize(
    ("arch", "keys", "conv", "state"),
    [
        ("rwkv6", {"wkv__head_size": 64}, 2 * 256, 64 * 256),
        ("kimi-linear", {"kda__head_dim": 32, "ssm__conv_kernel": 4}, 3 * 3 * 4 * 32, 32 * 32 * 4),
        ("minimax-01", {}, 0, 64 * 64 * 4),
        ("lfm2", {"shortconv__l_cache": 3}, 2 * 256, 0),
        ("mamba", {"ssm__inner_size": 512, "ssm__state_size": 16, "ssm__conv_kernel": 4}, 3 * 512, 16 * 512),
        (
            "mamba2",
            {"ssm__inner_size": 512, "ssm__state_size": 64, "ssm__conv_kernel": 4, "ssm__group_count": 2},
            3 * (512 + 2 * 2 * 64),
            64 * 512,
        ),
    ],
)
def test_elements_of_a_state(arch: str, keys: dict[str, Value], conv: int, state: int) -> None:
    shape = read_shape(model(arch, **keys))
    assert (shape.conv_elements, shape.state_elements) == (conv, state)


@pytest.mark.parametrize("arch", ["graniteswitch", "t5", "nanbeige", "qwen4exp", "brand-new"])
def test_what_was_not_derived_is_not_known(arch: str) -> None:
    assert not read_shape(model(arch)).known


def test_a_drafter_on_blocks_of_deepseek4_is_not_known() -> None:
    assert read_shape(model("dflash")).known
    assert not read_shape(model("dflash", hyper_connection__count=4)).known
