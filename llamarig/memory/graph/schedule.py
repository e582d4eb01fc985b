"""The engine's scheduler: which backend computes each node, and what is copied from one to the other.

Backends are numbered: cards from 0, the host last. Source: ``ggml_backend_sched_split_graph`` in
ggml/src/ggml-backend.cpp.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from llamarig.memory.graph.cuda import attend_on_card
from llamarig.memory.graph.tensors import NOWHERE, VIEWS, Graph, Tensor

PIPELINE_COPIES: Final = 4
"""GGML_SCHED_MAX_COPIES: passes that several cards may have in flight at once."""

_MOST_INPUTS: Final = 30
"""GGML_SCHED_MAX_SPLIT_INPUTS: copied inputs that a split has room for at first."""

_WORTH_COPYING: Final = 32
"""Rows from which a card computes with weights that lie in RAM, and copies them for it (GGML_OP_OFFLOAD_MIN_BATCH)."""

_INDIFFERENT: Final = frozenset({"rope", "flash_attn"})
"""Operations whose weights are too small to draw them to their own backend."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What the engine computes on."""

    cards: int
    """0 for the CPU backend alone."""
    copies: int = 1
    """:data:`PIPELINE_COPIES` when several cards work as a pipeline."""
    offload: bool = True
    """Whether cards compute long passes with weights that lie in RAM."""
    every_input: bool = False
    """Whether a pipeline keeps inputs that no node reads for each pass in flight, too."""


@dataclass(slots=True)
class _Split:
    """Nodes in a row on one backend."""

    backend: int
    first: int
    inputs: list[Tensor] = field(default_factory=list)
    room: int = _MOST_INPUTS
    """Inputs from which on a new split is begun; doubled when one node needs more."""


def schedule(graph: Graph, machine: Machine) -> tuple[list[Tensor], list[Tensor]]:
    """Nodes and leafs as they are allocated, copies included; each has its ``backend``."""
    if not machine.cards:
        for tensor in (*graph.nodes, *graph.leafs):
            tensor.backend = 0
        return graph.nodes, graph.leafs
    _assign(graph, machine)
    return _Splitter(graph, machine).run()


def _rows_of(node: Tensor) -> int:
    """Rows that decide whether copying a weight is worth it; source: ``get_op_batch_size``, ggml-cuda.cu."""
    if node.op == "get_rows":
        return 0
    if node.op == "mul_mat":
        return node.extent[1]
    return node.extent[2] if node.op in {"mul_mat_id", "rope"} else node.rows


def _start(tensor: Tensor, machine: Machine) -> int:
    """Backend that a tensor's own place or its weights decide; source: ``ggml_backend_sched_backend_id_from_cur``."""
    if tensor.lies >= 0:
        return tensor.lies
    host = machine.cards
    if tensor.is_input:
        return host
    if tensor.op not in _INDIFFERENT:
        for source in tensor.inputs:
            if source.is_weight:
                worth = machine.offload and not tensor.host_only and _rows_of(tensor) >= _WORTH_COPYING
                return 0 if source.lies == host and worth else source.lies
    return NOWHERE


def _spread(nodes: Iterable[Tensor], host: int, *, from_host: bool) -> None:
    """Give nodes without a backend that of the one before them."""
    current = NOWHERE
    for node in nodes:
        if node.backend >= 0:
            current = node.backend if from_host or node.backend != host else NOWHERE
        elif current >= 0 and (current == host or not node.host_only):
            node.backend = current


def _assign(graph: Graph, machine: Machine) -> None:
    host = machine.cards
    for tensor in (*graph.leafs, *graph.nodes):
        tensor.backend = tensor.pinned if tensor.pinned >= 0 else _start(tensor, machine)
    computed = [node for node in graph.nodes if node.op not in VIEWS]
    for from_host in (False, True):
        _spread(computed, host, from_host=from_host)
        _spread(reversed(computed), host, from_host=from_host)
        if all(node.backend >= 0 for node in computed):
            break
    for node in graph.nodes:
        if node.backend < 0:
            node.backend = host if node.root is None else max(node.root.backend, 0)


class _Splitter:
    """Cuts the graph where the backend changes and adds the copies that each split reads."""

    def __init__(self, graph: Graph, machine: Machine) -> None:
        self.graph = graph
        self.copies = machine.copies
        self.every_input = machine.every_input
        self.copied: dict[tuple[int, int], list[Tensor]] = {}
        """Copies by tensor (its ``id``) and backend."""
        self.caller_inputs: list[Tensor] = []
        self.splits: list[_Split] = []

    def run(self) -> tuple[list[Tensor], list[Tensor]]:
        self._cut()
        if self.copies > 1 and self.every_input:
            for leaf in self.graph.leafs:
                if leaf.is_input:
                    self._copy_at_caller(leaf)
        nodes: list[Tensor] = []
        ends = [split.first for split in self.splits[1:]] + [len(self.graph.nodes)]
        for split, end in zip(self.splits, ends, strict=True):
            for source in split.inputs:
                nodes += (_dependency(source), self.copied[id(source), split.backend][0])
            nodes += self.graph.nodes[split.first : end]
        leafs: list[Tensor] = []
        if self.copies > 1:
            for source in self.caller_inputs:
                leafs += self.copied[id(source), source.backend]
            for split in self.splits:
                for source in split.inputs:
                    leafs += self.copied[id(source), split.backend]
        return nodes, leafs + self.graph.leafs

    def _cut(self) -> None:
        split: _Split | None = None
        for number, node in enumerate(self.graph.nodes):
            if node.op in VIEWS:
                continue
            inputs, backend = node.inputs, node.backend
            away = [
                i for i, source in enumerate(inputs) if (source.backend if source.lies < 0 else source.lies) != backend
            ]
            if split is None or backend != split.backend or (away and self._is_crowded(split, inputs, away)):
                split = _Split(backend, number if split else 0)
                self.splits.append(split)
            if self.copies > 1:
                for source in inputs:
                    if source.is_input:
                        self._copy_at_caller(source)
            for index in away:
                inputs[index] = self._copy(inputs[index], split)
            if away and node.staging:
                # Copies of K and V are no views of each other any more.
                attend_on_card(node)

    def _is_crowded(self, split: _Split, inputs: list[Tensor], away: list[int]) -> bool:
        """Whether a new split frees weights copied before, or the split has too many inputs."""
        if not split.inputs:
            return False
        full = len(split.inputs) >= split.room
        return any(
            inputs[index].is_weight or (full and (id(inputs[index]), split.backend) not in self.copied)
            for index in away
        )

    def _copy_at_caller(self, source: Tensor) -> None:
        """A pipeline keeps one set of the caller's inputs for each pass in flight."""
        key = (id(source), source.backend)
        if key not in self.copied:
            source.is_output = True
            self.copied[key] = [source] + [_copy_of(source, source.backend, kept=True) for _ in range(1, self.copies)]
            self.caller_inputs.append(source)

    def _copy(self, source: Tensor, split: _Split) -> Tensor:
        key = (id(source), split.backend)
        copies = self.copied.get(key)
        if copies is None:
            kept = self.copies > 1
            copies = [_copy_of(source, split.backend, kept=kept) for _ in range(self.copies)]
            self.copied[key] = copies
            split.inputs.append(source)
            if len(split.inputs) > split.room:
                split.room *= 2
        return copies[0]


def _copy_of(source: Tensor, backend: int, *, kept: bool) -> Tensor:
    copy = Tensor("none", source.kind, source.extent, (), source.size)
    copy.packed = source.packed
    copy.is_input = copy.is_output = kept
    copy.backend = backend
    return copy


def _dependency(source: Tensor) -> Tensor:
    """Keeps ``source`` until it has been copied; it computes nothing."""
    tensor = Tensor("none", source.kind, source.extent, (source,), source.size)
    tensor.root = source if source.root is None else source.root
    tensor.lies = source.lies
    tensor.backend = source.backend
    return tensor
