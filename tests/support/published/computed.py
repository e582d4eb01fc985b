"""The terms of a published case as llamarig computes them."""

from __future__ import annotations

from dataclasses import replace

from llamarig.gguf import Header
from llamarig.gguf.tensor_types import BY_NAME
from llamarig.memory import Beside, estimate, read_shape
from llamarig.memory.draft_outputs import draft_output_bytes
from llamarig.memory.logits import logit_bytes
from llamarig.memory.placement.buffers import reduction_bytes
from llamarig.memory.units import MIB
from llamarig.memory.window import cut
from tests.support.big_models import header_of, qwen35_27b
from tests.support.gguf_bytes import Composed
from tests.support.models import compose
from tests.support.models.model import Model
from tests.support.published import Case, Figure, load
from tests.support.published.models import MODELS

TOLERANCE_MIB = 2.0
REFERENCE = "reference-27b"
"""The reference stack's model, whose file is composed to its published size."""

_PARTS = {"context": ("kv-cache", "recurrent-state")}


def model_of(case: Case) -> Model:
    """The case's model with what the case changes of it."""
    model = MODELS[case.model]
    return replace(model, keys={**model.keys, **case.keys}, vocabulary=case.vocabulary or model.vocabulary)


def header_of_case(case: Case) -> Header:
    """Its header: types of all matrices and of the embedding where the case knows them, or sums alone."""
    if case.model == REFERENCE:
        return header_of(qwen35_27b())
    composed = compose(model_of(case))
    if case.tensors:
        composed.tensors = _sums(composed, case)
    composed.tensors = [(name, _kind(case, name, kind, dims), dims) for name, kind, dims in composed.tensors]
    return header_of(composed)


def _kind(case: Case, name: str, kind: str, dims: tuple[int, ...]) -> str:
    """The case's type; rows that do not fill its blocks take Q8_0 (``tensor_type_fallback`` in src/llama-quant.cpp)."""
    wanted = case.embedding if name == "token_embd.weight" else case.quant
    if not wanted or kind in {"F32", "I8"}:
        return kind
    if wanted.endswith("_K_M"):
        wanted = _mixed(name, model_of(case).layers, wanted.removesuffix("_M"))
    return wanted if dims[0] % BY_NAME[wanted].block == 0 else "Q8_0"


def _mixed(name: str, layers: int, usual: str) -> str:
    """Q4_K_M, Q5_K_M: some V and down matrices and the output in Q6_K (``use_more_bits`` in src/llama-quant.cpp)."""
    if not name.startswith("blk."):
        return "Q6_K"
    _, number, tensor, _ = name.split(".")
    layer, eighth = int(number), layers // 8
    more = layer < eighth or layer >= 7 * layers // 8 or (layer - eighth) % 3 == 2
    return "Q6_K" if more and tensor in {"attn_v", "ffn_down"} else usual


def _sums(composed: Composed, case: Case) -> list[tuple[str, str, tuple[int, ...]]]:
    """The embedding, and one tensor each for what else is published of the sizes."""
    [embedding] = [tensor for tensor in composed.tensors if tensor[0] == "token_embd.weight"]
    head = round(case.tensors["head"] * MIB)
    rest = round(case.tensors["all"] * MIB) - head - composed.size_of(case.embedding, embedding[2])
    return [
        embedding,
        ("output.weight", "I8", (rest,)),
        (f"blk.{model_of(case).trunk}.filler.weight", "I8", (head,)),
    ]


class Computed:
    """A case's server, planned."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.header = header_of_case(case)
        self.shape = read_shape(self.header)
        self.estimate = estimate(self.header, case.settings, Beside(projector_size=case.projector or None))

    def term(self, term: str) -> Figure:
        """MiB of a held term: on each card when the published figure is by card, else over all."""
        if term == "increase":
            [before] = [Computed(case) for case in load() if case.name == self.case.over]
            both = zip(self.estimate.devices, before.estimate.devices, strict=True)
            return tuple(sum(more.values()) - sum(less.values()) for more, less in both)
        if isinstance(self.case.held[term], float):
            return self._whole(term)
        apart = self._apart() if term == "compute" else (0.0,) * len(self.estimate.devices)
        cards = zip(self.estimate.devices, apart, strict=True)
        return tuple(_on(card, term) - beside for card, beside in cards)

    def _apart(self) -> tuple[float, ...]:
        """MiB of each card in which a tensor split's sums meet: no part of the column that servers print."""
        size = reduction_bytes(self.shape, self.case.settings, cut(self.case.settings))
        return tuple(size.on(card) / MIB for card in range(len(self.estimate.devices)))

    def _whole(self, term: str) -> float:
        settings, window, found = self.case.settings, cut(self.case.settings), self.estimate
        outputs = logit_bytes(self.shape, settings) / MIB
        special = {
            "used": lambda: found.device_mib,
            "cells": lambda: float(window.cells),
            "sliding-cells": lambda: float(window.sliding_cells(self.shape, settings)),
            "outputs": lambda: outputs,
            "host-compute": lambda: found.host["compute"] - outputs,
            "host-draft-compute": lambda: found.host["draft-compute"] - draft_output_bytes(self.shape, settings) / MIB,
            # The draft's cache and one card's share of its buffer: so the server counts, also in tensor split.
            "spec-estimate": lambda: (
                found.device["draft-kv-cache"] + max(card.get("draft-compute", 0.0) for card in found.devices)
            ),
        }
        if term in special:
            return special[term]()
        if term.startswith("host-"):
            return found.host.get(term.removeprefix("host-"), 0.0)
        return _on(found.device, term)

    def pairs(self, term: str) -> list[tuple[float, float]]:
        """Computed and published, of each card or of all together."""
        ours, theirs = self.term(term), self.case.held[term]
        if isinstance(ours, float) or isinstance(theirs, float):
            assert isinstance(ours, float)
            assert isinstance(theirs, float)
            return [(ours, theirs)]
        return list(zip(ours, theirs, strict=True))

    def difference(self, term: str) -> float:
        """MiB that are computed above what was published; of several cards the largest."""
        return max((ours - theirs for ours, theirs in self.pairs(term)), key=abs)

    def within(self, term: str) -> bool:
        """Whether every card's figure is within the case's tolerance, 1 % mostly, or 2 MiB of the published one."""
        tolerance = self.case.tolerance
        return all(abs(ours - theirs) <= max(TOLERANCE_MIB, tolerance * theirs) for ours, theirs in self.pairs(term))


def _on(card: dict[str, float], term: str) -> float:
    return sum(card.get(part, 0.0) for part in _PARTS.get(term, (term,)))
