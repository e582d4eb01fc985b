"""Published models shrunk to a few MB each: every family's blocks, which a real server loads in a moment.

The weights are random bytes with small scales. What a server says with them makes no sense; what it allocates does.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from tests.support import gguf_bytes as raw
from tests.support.models import MODELS, compose
from tests.support.models.model import Keys, Model, Value
from tests.support.tiny_models import TEMPLATE, vocabulary

VOCABULARY = 4096
_LAYERS = 8
_SIZES: Keys = {
    "embedding_length": 256,
    "feed_forward_length": 512,
    "attention.head_count": 4,
    "attention.head_count_kv": 2,
    "attention.key_length": 64,
    "attention.value_length": 64,
    "attention.key_length_swa": 64,
    "attention.value_length_swa": 64,
    "attention.sliding_window": 128,
    "attention.shared_kv_layers": 5,
    "attention.q_lora_rank": 64,
    "attention.kv_lora_rank": 64,
    "attention.key_length_mla": 64,
    "attention.value_length_mla": 32,
    "embedding_length_per_layer_input": 32,
    "rope.dimension_count": 64,
    "context_length": 32_768,
    "expert_count": 8,
    "expert_used_count": 2,
    "expert_feed_forward_length": 256,
    "expert_shared_feed_forward_length": 256,
    "ssm.inner_size": 256,
    "ssm.state_size": 64,
    "ssm.time_step_rank": 4,
    "ssm.group_count": 2,
}
"""What a shrunk model has where the published one has the key."""
_OWN: dict[str, Keys] = {
    "gemma3n-e2b": {"block_count": 30},
    "gemma4-e2b": {
        "block_count": 10,
        "attention.key_length": 128,
        "attention.value_length": 128,
        "rope.dimension_count_swa": 64,
    },
    "glm4-9b": {"rope.dimension_count": 32},
    "glm4.5-air": {"rope.dimension_count": 32},
    "glm4.7-flash": {
        "attention.head_count_kv": 1,
        "attention.key_length": 96,
        "rope.dimension_count": 32,
    },
    "granite-4.0-h-tiny": {
        "feed_forward_length": 256,
        "ssm.group_count": 1,
        "ssm.inner_size": 512,
        "ssm.time_step_rank": 8,
    },
    "jamba-v0.1": {"ssm.inner_size": 512, "ssm.state_size": 16, "ssm.time_step_rank": 16},
    "mamba-130m": {
        "ssm.inner_size": 512,
        "ssm.state_size": 16,
        "ssm.time_step_rank": 16,
        "attention.head_count": 0,
        "attention.head_count_kv": 0,
    },
    "mamba2-370m": {"attention.head_count": 0, "attention.head_count_kv": 0},
    "nemotron-nano-9b-v2": {"block_count": 16},
    "qwen35-27b": {"block_count": 9},
}

SMALL = (
    "llama-3.1-8b",
    "mixtral-8x7b",
    "ministral3-8b",
    "qwen2.5-7b",
    "qwen3-32b",
    "qwen3moe-30b-a3b",
    "gpt-oss-20b",
    "gemma2-9b",
    "gemma3-27b",
    "gemma3n-e2b",
    "gemma4-e2b",
    "command-r7b",
    "olmo2-7b",
    "exaone4-1.2b",
    "seed-oss-36b",
    "phi4",
    "smollm3-3b",
    "granite-3.3-8b",
    "granite-3.1-3b-a800m",
    "glm4-9b",
    "glm4.5-air",
    "llama4-scout",
    "glm4.7-flash",
    "qwen35-27b",
    "qwen35moe-35b-a3b",
    "qwen3next-80b-a3b",
    "mamba-130m",
    "mamba2-370m",
    "lfm2-1.2b",
    "lfm2-8b-a1b",
    "granite-4.0-h-tiny",
    "nemotron-nano-9b-v2",
    "nemotron-3-nano-30b-a3b",
    "falcon-h1-0.5b",
    "jamba-v0.1",
)
"""One of each family of blocks, by the name of the model that it is shrunk from."""


def shrink(name: str) -> Model:
    """The model with small dimensions and few layers; what is listed by layer keeps its pattern."""
    model = MODELS[name]
    own = {"block_count": _LAYERS} | _OWN.get(name, {})
    layers = own["block_count"]
    assert isinstance(layers, int)
    keys: Keys = {}
    for key, value in model.keys.items():
        small = own.get(key, _SIZES.get(key, value))
        if isinstance(value, list) and len(value) == model.layers:
            small = _listed(value, small, layers)
        keys[key] = small
    keys |= {key: value for key, value in own.items() if key not in keys}
    return replace(model, name=f"small {name}", vocabulary=VOCABULARY, keys=keys)


def _listed(value: list[int] | list[bool], small: Value, layers: int) -> Value:
    """The pattern of the first layers, with the small number for each that is not 0."""
    if isinstance(value[0], bool) or isinstance(small, list):
        return value[:layers]
    return [int(small) if item else 0 for item in value[:layers]]


def write_small(name: str, path: Path) -> Path:
    """Write the shrunk model's file, with a vocabulary that a server can use."""
    composed = compose(shrink(name))
    composed.pairs = [pair for pair in composed.pairs if not pair[8:].startswith(b"tokenizer.")]
    tokens = vocabulary()
    tokens += [f"<|filler_{number}|>" for number in range(VOCABULARY - len(tokens))]
    composed.add("tokenizer.ggml.model", raw.STRING, "gpt2").add("tokenizer.ggml.pre", raw.STRING, "qwen2")
    composed.pairs.append(raw.array("tokenizer.ggml.tokens", raw.STRING, tokens))
    composed.pairs.append(raw.array("tokenizer.ggml.token_type", raw.I32, [1] * VOCABULARY))
    composed.pairs.append(raw.array("tokenizer.ggml.merges", raw.STRING, ["\u0120 \u0120"]))
    composed.add("tokenizer.ggml.bos_token_id", raw.U32, 0).add("tokenizer.ggml.eos_token_id", raw.U32, 2)
    composed.add("tokenizer.ggml.add_bos_token", raw.BOOL, value=False)
    composed.add("tokenizer.chat_template", raw.STRING, TEMPLATE)
    return _fill(composed.write_sparse(path), composed)


_SCALES = {"Q4_0": (0,), "Q8_0": (0,), "Q5_0": (0,), "Q5_1": (0, 2), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,)}
"""Bytes of a block at which a scale in f16 begins."""
_SMALL_SCALE = np.frombuffer(np.float16(0.0005).tobytes(), np.uint8)


def _fill(path: Path, composed: raw.Composed) -> Path:
    """Write weights over the hole: no number that is none, since some families divide by what comes out."""
    rng = np.random.default_rng(11)
    start = len(composed.header())
    offset = 0
    with path.open("r+b") as stream:
        for _, kind, dims in composed.tensors:
            size = composed.size_of(kind, dims)
            stream.seek(start + offset)
            stream.write(_data(rng, kind, size))
            end = offset + size
            offset = end + -end % composed.alignment
    return path


def _data(rng: np.random.Generator, kind: str, size: int) -> bytes:
    if kind in {"F32", "F16"}:
        dtype = np.dtype(np.float32 if kind == "F32" else np.float16)
        return (rng.standard_normal(size // dtype.itemsize) * 0.05).astype(dtype).tobytes()
    _, _, block = raw.TYPES[kind]
    found = rng.integers(0, 256, (size // block, block), np.uint8)
    for place in _SCALES.get(kind, ()):
        found[:, place : place + 2] = _SMALL_SCALE
    if kind == "MXFP4":
        found[:, 0] = 118
    return found.tobytes()
