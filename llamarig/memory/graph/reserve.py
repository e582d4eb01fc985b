"""What the engine reserves for its passes, on each card and on the host.

The engine builds the graph of its biggest pass once, at start, and keeps the buffers that this takes. Source:
``sched_reserve`` and ``graph_reserve`` in src/llama-context.cpp.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from llamarig.gguf.header import Header
from llamarig.memory.draft_outputs import drafted_rows
from llamarig.memory.graph.allocator import Allocator
from llamarig.memory.graph.builder import Builder, Pass, Placement
from llamarig.memory.graph.cuda import ALIGNMENT
from llamarig.memory.graph.families import BUILDERS, HEADS, Build
from llamarig.memory.graph.families.marks import mark
from llamarig.memory.graph.schedule import Machine, schedule
from llamarig.memory.graph.steady import Selection
from llamarig.memory.logits import logit_rows
from llamarig.memory.placement.layers import copies, places
from llamarig.memory.placement.tensors import placing
from llamarig.memory.settings import Settings
from llamarig.memory.shape import Shape
from llamarig.memory.split import Place, Split
from llamarig.memory.units import pad
from llamarig.memory.window import Window

_HOST_ALIGNMENT = 32
"""TENSOR_ALIGNMENT in ggml/src/ggml-impl.h."""


def is_known(shape: Shape) -> bool:
    """Whether the architecture's graph is known."""
    return shape.architecture in BUILDERS


def reserve(header: Header, shape: Shape, settings: Settings, window: Window, outputs: int | None = None) -> Split:
    """Bytes of the target's compute buffers: of each card, and of the host beside them or alone.

    ``outputs`` are the rows of logits of one pass: by default those that a server asks for; the engine's benchmark
    takes all tokens of a pass. The architecture has to be known, see :func:`is_known`.
    """
    work = _pass(shape, settings, window, outputs)
    return simulate(header, shape, work, settings, BUILDERS[shape.architecture])


def measure(header: Header, shape: Shape, settings: Settings, window: Window) -> Split:
    """The same as the engine's fit tool measures it: with logits of all tokens, and norms free to change their card.

    Source: ``ggml_backend_sched_reserve_size`` in ggml/src/ggml-backend.cpp, which resets what was pinned.
    """
    work = replace(_pass(shape, settings, window, window.ubatch), pinned=False)
    return simulate(header, shape, work, settings, BUILDERS[shape.architecture])


def head_is_known(shape: Shape) -> bool:
    """Whether the graph of the architecture's MTP head is known."""
    return shape.architecture in HEADS


def reserve_head(header: Header, shape: Shape, settings: Settings, window: Window) -> Split:
    """Bytes of the buffers of the context that the MTP head drafts in; see :func:`head_is_known`.

    It has the target's window and slots, cache types of its own, and one row of logits a slot. Source:
    ``common_base_params_to_speculative`` in common/speculative.cpp.
    """
    kinds = replace(settings, cache_k=settings.draft_k, cache_v=settings.draft_v)
    work = _pass(shape, kinds, window, settings.parallel if settings.era.outputs_only else None)
    work = replace(work, sampled=1 if settings.samples_drafts else 0)
    return simulate(header, shape, work, settings, HEADS[shape.architecture])


def _pass(shape: Shape, settings: Settings, window: Window, outputs: int | None) -> Pass:
    era = settings.era
    if outputs is None:
        outputs = logit_rows(settings) if era.outputs_only else window.ubatch
    return Pass(
        tokens=pad(window.ubatch, settings.parallel),
        sequences=settings.parallel,
        outputs=max(min(window.ubatch, outputs), 1),
        streams=window.streams,
        cells=window.cells,
        sliding_cells=window.sliding_cells(shape, settings) if shape.window else 0,
        cache_k=settings.cache_k,
        cache_v=settings.cache_v,
        flash_attention=settings.flash_attention,
        rotation=settings.attention_rotation and era.rotation,
        snapshots=settings.snapshots,
        half_mask=era.half_mask,
        staging=era.staging,
        flat_projections=era.flat_projections,
        sampled=drafted_rows(shape, settings) if settings.samples_drafts else 0,
    )


def simulate(header: Header, shape: Shape, work: Pass, settings: Settings, build: Build) -> Split:
    """Bytes of the buffers that one pass takes; layers that repeat what others did are left out."""
    placement = _placement(shape, settings)
    selection = Selection(kinds_of(header, shape, placement))
    while True:
        builder = Builder(header, shape, work, placement, selection.layers)
        build(builder)
        sizes, states = _allocate(builder, shape, settings, with_states=not selection.whole)
        # A head's pass goes through none of the trunk's layers.
        if not states or selection.has_settled(states):
            break
    if settings.split_mode == "tensor" and placement.cards:
        sizes = [sizes[0]] * settings.cards + sizes[1:]
    return Split(tuple(sizes[:-1]), sizes[-1])


def kinds_of(header: Header, shape: Shape, placement: Placement) -> list[Hashable]:
    """What tells the trunk's layers apart: dimensions, place and tensors.

    Where a card borrows weights from RAM, their sizes do, too.
    """
    blocks = header.block_tensors
    borrows = placement.cards > 0 and not placement.everything_on_cards
    return [
        (
            shape.layers[number],
            placement.of(number),
            blocks.get(number),
            mark(header, number),
            _weights(header, placement, number) if borrows else None,
        )
        for number in range(len(shape.trunk))
    ]


def _weights(header: Header, placement: Placement, number: int) -> Hashable:
    """Where a layer's weights are, and the bytes of those in RAM; of a header without tensors its number alone."""
    names = header.block_tensors.get(number)
    if names is None:
        return number
    found, place = [], placement.of(number)
    # Norms are asked for by a name that no file has.
    for name in (*sorted(names), "norm"):
        full = f"blk.{number}.{name}"
        if placement.by_name is not None:
            place = placement.by_name(full)
        tensor = header.by_name.get(full)
        found.append((place, tensor.size if tensor is not None and place == placement.cards else 0))
    return tuple(found)


def _allocate(
    builder: Builder, shape: Shape, settings: Settings, *, with_states: bool
) -> tuple[list[int], dict[int, Hashable]]:
    """Bytes of each buffer, and what the allocator held when each layer began, where that is asked for."""
    cards = builder.placement.cards
    machine = Machine(cards, copies(shape, settings), settings.op_offload, settings.era.every_input)
    nodes, leafs = schedule(builder.graph, machine)
    allocator = Allocator([ALIGNMENT] * cards + [_HOST_ALIGNMENT], with_states=with_states)
    return allocator.run(nodes, leafs), allocator.states


def _placement(shape: Shape, settings: Settings) -> Placement:
    """The places of :mod:`llamarig.memory.placement` as numbers of backends.

    In tensor split the engine sees one device; each of its cards is taken to hold whole tensors, which is more than
    they do.
    """
    if settings.backend == "cpu":
        return Placement(cards=0, blocks=(0,) * (len(shape.layers) + 1))
    cards = settings.cards if settings.split_mode == "layer" else 1

    def number(place: Place) -> int:
        return cards if place is None else min(place, cards - 1)

    blocks = tuple(number(place) for place in places(shape, settings))
    if not settings.overridden:
        return Placement(cards=cards, blocks=blocks, offload=settings.op_offload)
    find = placing(shape, settings)
    return Placement(cards=cards, blocks=blocks, offload=settings.op_offload, by_name=lambda name: number(find(name)))
