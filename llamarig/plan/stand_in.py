"""Headers that stand in for those of files which are not at hand, and what one may say of them.

A file's bytes are exact, and so are a model's dimensions; what such a header does not know is how the bytes are shared
among the tensors. It shares them as another quant of the same model does, or evenly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

from llamarig.catalog.known_files import KnownFile, KnownModel
from llamarig.gguf import Header
from llamarig.gguf.header import Omitted, Tensor, Value
from llamarig.gguf.tensor_types import BY_NAME
from llamarig.memory import families

_BITS = 8
_ENDS = ("token_embd.weight", "output.weight")
_STEPS = ("IQ2_XXS", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "Q8_0", "BF16")
"""Block types in order of bits a weight, one of each width that quantisation mixes are made of."""


def scaled(header: Header, size: int) -> Header:
    """The header of another quant of the same model: each tensor's share of ``size`` bytes is as in ``header``."""
    factor = (size - header.data_start) / max(header.data_size, 1)
    tensors = tuple(each._replace(size=math.ceil(each.size * factor)) for each in header.tensors)
    return replace(header, tensors=tensors, data_size=math.ceil(header.data_size * factor))


def composed(model: KnownModel, file: KnownFile) -> Header | None:
    """A header from a model's dimensions and a file's bytes; None when nobody wrote the dimensions down.

    Every matrix gets the same bits a weight, but the embedding and the output get their published types, or the widest
    common block type that is not above that: quantisers give them the mix's main type, and what the embedding takes
    less, the card takes more.
    """
    if not model.shape:
        return None
    keys = dict(model.shape)
    architecture, vocabulary = str(keys.pop("architecture")), int(keys.pop("vocabulary"))
    if not file.mtp and keys.get("nextn_predict_layers"):
        keys["block_count"] = int(keys["block_count"]) - int(keys.pop("nextn_predict_layers"))
    metadata: dict[str, Value] = {"general.architecture": architecture, "general.name": model.name}
    metadata |= {f"{architecture}.{key}": value for key, value in keys.items()}
    metadata["tokenizer.ggml.tokens"] = Omitted("string", vocabulary)
    matrices = list(_matrices(architecture, {key: int(value) for key, value in keys.items()}, vocabulary))
    return Header(
        version=3,
        metadata=metadata,
        tensors=tuple(_shared(matrices, file)),
        alignment=32,
        data_start=0,
        data_size=file.most_bytes,
        embedding_assumed=file.embedding_type is None,
    )


def _shared(matrices: list[tuple[str, tuple[int, ...]]], file: KnownFile) -> Iterator[Tensor]:
    size = file.most_bytes
    weights = {name: math.prod(dims) for name, dims in matrices}
    mean = _step(size * _BITS / sum(weights.values()))
    ends = dict(zip(_ENDS, (file.embedding_type or mean, file.output_type or mean), strict=True))
    fixed = {name: weights[name] // BY_NAME[kind].block * BY_NAME[kind].size for name, kind in ends.items()}
    rest = (size - sum(fixed.values())) / (sum(weights.values()) - sum(weights[name] for name in _ENDS))
    for name, dims in matrices:
        yield Tensor(name, ends.get(name, mean), dims, 0, fixed.get(name, math.ceil(weights[name] * rest)))


def _step(mean: float) -> str:
    """The widest common block type of at most ``mean`` bits a weight."""
    fitting = [name for name in _STEPS if BY_NAME[name].size * _BITS / BY_NAME[name].block <= mean]
    return fitting[-1] if fitting else _STEPS[0]


def _matrices(architecture: str, keys: Mapping[str, int], vocabulary: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Name and dimensions of each matrix; what holds no noticeable share of the bytes is left out."""
    width = keys["embedding_length"]
    mtp = keys.get("nextn_predict_layers", 0)
    count = keys["block_count"]
    yield from ((name, (width, vocabulary)) for name in _ENDS)
    for block in range(count):
        linear = architecture in families.INTERVAL and block < count - mtp
        linear = linear and (block + 1) % keys.get("full_attention_interval", 4) != 0
        parts = _linear(keys) if linear else _attention(architecture, keys)
        head = {"nextn.eh_proj": (2 * width, width)} if block >= count - mtp else {}
        for name, dims in (parts | _feed_forward(keys) | head).items():
            yield f"blk.{block}.{name}.weight", dims


def _attention(architecture: str, keys: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    width, heads = keys["embedding_length"], keys["attention.head_count"]
    shared = keys.get("attention.head_count_kv", heads)
    key = keys.get("attention.key_length", width // heads)
    value = keys.get("attention.value_length", key)
    gate = 2 if architecture in families.GATED else 1
    return {
        "attn_q": (width, gate * heads * key),
        "attn_k": (width, shared * key),
        "attn_v": (width, shared * value),
        "attn_output": (heads * value, width),
    }


def _linear(keys: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    width, inner = keys["embedding_length"], keys["ssm.inner_size"]
    joint = inner + 2 * keys["ssm.group_count"] * keys["ssm.state_size"]
    return {"attn_qkv": (width, joint), "attn_gate": (width, inner), "ssm_out": (inner, width)}


def _feed_forward(keys: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    width, experts = keys["embedding_length"], keys.get("expert_count", 0)
    if not experts:
        ff = keys["feed_forward_length"]
        return {"ffn_gate": (width, ff), "ffn_up": (width, ff), "ffn_down": (ff, width)}
    ff = keys["expert_feed_forward_length"]
    return {
        "ffn_gate_exps": (width, ff, experts),
        "ffn_up_exps": (width, ff, experts),
        "ffn_down_exps": (ff, width, experts),
    }
