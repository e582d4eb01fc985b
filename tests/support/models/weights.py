"""Tensors of a model in a mix of types like that of published Q4_K_M files."""

from __future__ import annotations

from tests.support.gguf_bytes import Composed
from tests.support.models.model import Model

_FALLBACK = {"Q4_K": "Q5_0", "Q5_K": "Q5_1", "Q6_K": "Q8_0"}
"""What a row that is no multiple of 256 gets; source: ``tensor_type_fallback`` in src/llama-quant.cpp."""


def _more_bits(layer: int, layers: int) -> bool:
    """The first and the last eighth, and every third between; source: ``use_more_bits`` in src/llama-quant.cpp."""
    eighth = layers // 8
    return layer < eighth or layer >= 7 * eighth or (layer - eighth) % 3 == 2


class Weights:
    """Collects the tensors of one model."""

    def __init__(self, model: Model, composed: Composed) -> None:
        self.model = model
        self.composed = composed

    def tensor(self, name: str, kind: str, *dims: int) -> None:
        """One tensor; the type gives way where a row does not fill its blocks."""
        if kind in _FALLBACK and dims[0] % 256:
            kind = _FALLBACK[kind]
        if kind not in {"F32", "F16"} and dims[0] % 32:
            kind = "F16"
        self.composed.tensor(name, kind, *dims)

    def matrix(self, layer: int, name: str, *dims: int, kind: str = "") -> None:
        """A layer's matrix, ``.weight``; half of the V and down matrices get more bits."""
        better = name in {"attn_v", "ffn_down", "ffn_down_exps", "ffn_down_shexp"}
        usual = "Q6_K" if better and _more_bits(layer, self.model.layers) else "Q4_K"
        self.tensor(f"blk.{layer}.{name}.weight", kind or usual, *dims)

    def vector(self, layer: int, name: str, *dims: int) -> None:
        """A layer's small tensor in f32; ``name`` is whole."""
        self.composed.tensor(f"blk.{layer}.{name}", "F32", *dims)

    def norms(self, layer: int, *names: str) -> None:
        """Norms over the hidden row."""
        for name in names:
            self.vector(layer, f"{name}.weight", self.model.embedding)
