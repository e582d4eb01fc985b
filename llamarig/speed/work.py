"""What one pass of a model reads and computes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple

from llamarig.gguf.header import Header
from llamarig.memory.placement.layers import places
from llamarig.memory.placement.tensors import placing
from llamarig.memory.recurrent import state_bytes
from llamarig.memory.settings import Settings
from llamarig.memory.shape import Layer, Shape
from llamarig.memory.units import F16_BYTES, is_quantised, row_bytes
from llamarig.speed.kernels import class_of

_READ_BY_ROW = ("token_embd", "per_layer_token_embd.", "position_embd.", "token_types.")
"""Of these a pass reads a row a token, not the matrix."""


class Matrices(NamedTuple):
    """Weights of one kernel class: bytes as stored, and how many."""

    size: float
    weights: float


@dataclass(frozen=True, slots=True)
class Cache:
    """Attention of some layers: what a token in the window costs each pass."""

    row: float
    """Bytes of K and V of one token, as stored."""
    elements: float
    flops: float
    """Operations for one token that looks at one token."""
    window: int = 0
    """Tokens that these layers look back at most; 0: all."""
    quantised: bool = False

    def seen(self, depth: float) -> float:
        """Tokens that a pass looks at when ``depth`` are in the window."""
        return min(depth, self.window) if self.window else depth


@dataclass(frozen=True, slots=True)
class Work:
    """What one pass of one slot reads and computes on the card."""

    dense: Mapping[str, Matrices]
    """Matrices that every token uses, by kernel class; without the output."""
    layers: int
    """Blocks of the model, each with its handful of kernels to launch."""
    output: Mapping[str, Matrices]
    """The output matrix: multiplied only for tokens whose successor is asked for."""
    draft: Mapping[str, Matrices] = field(default_factory=dict)
    """The draft head's own matrices; empty when nothing drafts that way."""
    experts: Mapping[str, Matrices] = field(default_factory=dict)
    """All experts of all layers."""
    expert_share: float = 1.0
    """Experts that one token uses / experts."""
    caches: tuple[Cache, ...] = ()
    draft_cache: Cache | None = None
    state: float = 0.0
    """Bytes of one copy of the recurrent state."""
    elsewhere: float = 0.0
    """Bytes that one token reads of matrices in RAM; of experts there those that it uses."""

    def read(self, width: int = 1, depth: float = 0.0) -> float:
        """Bytes that a pass of ``width`` tokens over ``depth`` cannot help reading, with the output once."""
        whole = sum(part.size for part in (*self.dense.values(), *self.output.values()))
        used = sum(part.size for part in self.experts.values()) * self.experts_touched(width)
        return whole + used + self.state + sum(cache.row * cache.seen(depth) for cache in self.caches)

    def read_drafting(self, depth: float = 0.0) -> float:
        """Bytes that one pass of the draft head cannot help reading: itself, the output, its cache."""
        cache = self.draft_cache
        own = sum(part.size for part in (*self.draft.values(), *self.output.values()))
        return own + (cache.row * cache.seen(depth) if cache else 0.0)

    def experts_touched(self, width: int) -> float:
        """Share of all experts that ``width`` tokens use together, when each draws its own at random."""
        return 1.0 - (1.0 - self.expert_share) ** width

    def flops(self) -> float:
        """Multiplications and additions of one token in all matrices but the output."""
        dense = sum(part.weights for part in self.dense.values())
        return 2 * (dense + self.expert_share * sum(part.weights for part in self.experts.values()))


def work_of(header: Header, shape: Shape, settings: Settings) -> Work:
    """The work of ``header``'s model under ``settings``; what lies in RAM is kept apart as ``elsewhere``."""
    parts: dict[str, dict[str, list[float]]] = {"dense": {}, "output": {}, "draft": {}, "experts": {}}
    place, output = placing(shape, settings), places(shape, settings)[-1]
    whole = settings.backend == "cuda" and settings.gpu_layers is None and not settings.overridden
    share = min(shape.experts_used / max(header.integer(".expert_count", 0), 1), 1.0)
    trunk, elsewhere = len(shape.trunk), 0.0
    tied = "output.weight" not in header.by_name
    for tensor in header.tensors:
        where = _part(tensor.name, trunk, tied=tied)
        if where is None or (where == "draft" and not settings.mtp):
            continue
        if not whole and (output if where == "output" else place(tensor.name)) is None:
            elsewhere += tensor.size * (share if where == "experts" else 1.0)
            continue
        sums = parts[where].setdefault(class_of(tensor.type), [0.0, 0.0])
        sums[0] += tensor.size
        sums[1] += prod(tensor.dims)
    made = {name: {kind: Matrices(*sums) for kind, sums in part.items()} for name, part in parts.items()}
    return Work(
        dense=made["dense"],
        layers=trunk,
        output=made["output"],
        draft=made["draft"],
        experts=made["experts"],
        expert_share=share if made["experts"] else 1.0,
        caches=_caches(shape, settings),
        draft_cache=_draft_cache(shape, settings),
        state=float(state_bytes(shape)),
        elsewhere=elsewhere,
    )


def _part(name: str, trunk: int, *, tied: bool) -> str | None:
    """To which part a tensor belongs; None for what a pass does not multiply by."""
    if name.startswith("blk."):
        number = name.split(".", 2)[1]
        if number.isdecimal() and int(number) >= trunk:
            return "draft"
        return "experts" if "_exps." in name else "dense"
    if name == "output.weight" or (tied and name == "token_embd.weight"):
        return "output"
    return None if name.startswith(_READ_BY_ROW) else "dense"


def _cache(layers: list[Layer], key: str, value: str, window: int) -> Cache:
    """Attention of ``layers``; a query multiplies as many K as V elements, 2 operations each."""
    return Cache(
        row=sum(
            row_bytes(key, layer.k_width) + (row_bytes(value, layer.v_width) if layer.v_width else 0)
            for layer in layers
        ),
        elements=sum(layer.k_width + layer.v_width for layer in layers),
        flops=4.0 * sum(layer.query_width for layer in layers),
        window=window,
        quantised=is_quantised(key) or is_quantised(value),
    )


def _caches(shape: Shape, settings: Settings) -> tuple[Cache, ...]:
    """One cache for the layers that see all, one for those that slide."""
    found = []
    for sliding in (False, True):
        group = [layer for layer in shape.trunk if layer.k_width and layer.sliding is sliding]
        if group:
            found.append(_cache(group, settings.cache_k, settings.cache_v, shape.window if sliding else 0))
    return tuple(found)


def _draft_cache(shape: Shape, settings: Settings) -> Cache | None:
    layers = [layer for layer in shape.mtp_layers if layer.k_width]
    return _cache(layers, settings.draft_k, settings.draft_v, 0) if layers and settings.mtp else None


def staged_bytes(cache: Cache) -> float:
    """Bytes that attention moves for one token when it unpacks first: read as stored, f16 written and read again."""
    return cache.row + 2 * cache.elements * F16_BYTES if cache.quantised else cache.row
