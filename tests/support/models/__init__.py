"""Published models without their weights: real headers over files of holes.

``MODELS`` names them; ``write(name, path)`` makes a GGUF file that the engine's fit tool accepts (it reads no
tensor data), and ``header(name)`` is the same as llamarig reads it.
"""

from __future__ import annotations

import io
from pathlib import Path

from llamarig.gguf import Header, read_header
from tests.support import gguf_bytes as raw
from tests.support.models.attending import ATTENDING
from tests.support.models.further import FURTHER
from tests.support.models.large import LARGE
from tests.support.models.model import Model, Value
from tests.support.models.recurrent import RECURRENT
from tests.support.models.weights import Weights

MODELS: dict[str, Model] = {model.name: model for model in (*LARGE, *ATTENDING, *FURTHER, *RECURRENT)}


def compose(model: Model) -> raw.Composed:
    """The model's file in the making.

    It has no tokens, only their number, with ``tokenizer.ggml.model`` ``no_vocab``: the engine then adds as many
    nameless ones.
    """
    composed = raw.Composed()
    composed.add("general.architecture", raw.STRING, model.architecture)
    composed.add("general.name", raw.STRING, model.name)
    composed.add("tokenizer.ggml.model", raw.STRING, "no_vocab")
    for key, value in {
        "vocab_size": model.vocabulary,
        "attention.layer_norm_rms_epsilon": 1e-6,
        "attention.layer_norm_epsilon": 1e-6,
        **model.keys,
    }.items():
        whole = key if key.startswith("xielu.") else f"{model.architecture}.{key}"
        composed.pairs.append(_pair(whole, value))
    weights = Weights(model, composed)
    embedding = (model.embedding, model.vocabulary)
    weights.tensor("token_embd.weight", "Q6_K" if model.tied else "Q4_K", *embedding)
    norm = "token_embd_norm" if model.architecture.startswith("lfm2") else "output_norm"
    composed.tensor(f"{norm}.weight", "F32", model.embedding)
    if not model.tied:
        weights.tensor("output.weight", "Q6_K", *embedding)
    model.layout(weights)
    return composed


def _pair(key: str, value: Value) -> bytes:
    """The engine is strict about types: counts are uint32, ratios float32."""
    if isinstance(value, list):
        kind = raw.BOOL if isinstance(value[0], bool) else raw.I32
        return raw.array(key, kind, value)
    for form, kind in ((bool, raw.BOOL), (int, raw.U32), (float, raw.F32), (str, raw.STRING)):
        if isinstance(value, form):
            return raw.pair(key, kind, value)
    raise TypeError(key)


def write(name: str, path: Path) -> Path:
    """Write the model's file; its weights are a hole, so it takes no room."""
    return compose(MODELS[name]).write_sparse(path)


def header(name: str) -> Header:
    """The model's header as the product's reader sees it; no file is written."""
    composed = compose(MODELS[name])
    head = composed.header()
    return read_header(io.BytesIO(head), file_size=len(head) + composed.data_size())
