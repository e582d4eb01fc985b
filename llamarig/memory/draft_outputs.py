"""Rows that drafting makes the host keep: those that a drafter reads, and those that it answers with.

A server's log shows the first rows only, one of logits a slot: the buffers grow when the drafter gets its samplers, and
with the first batch. Sources: ``output_reserve`` and ``encode`` in src/llama-context.cpp; the drafters in
common/speculative.cpp. The buffers were seen with servers of build 10454; the drafter's own copies were only read.
"""

from __future__ import annotations

from llamarig.gguf.header import Header
from llamarig.memory.families import READERS
from llamarig.memory.settings import Settings
from llamarig.memory.shape import Shape
from llamarig.memory.units import F32_BYTES
from llamarig.memory.window import cut

_SAMPLED = 3
"""Of each row that is sampled where it is computed: logits and probabilities in f32, and tokens in i32."""


def draft_output_bytes(shape: Shape, settings: Settings) -> int:
    """Bytes of host RAM for an MTP head's drafts; nothing without MTP.

    The target's hidden row for every token of a batch, once more in the batch that the head gets, and once more for
    each slot, to go back to; of the head what :func:`_answer` says, for one row a slot.
    """
    if not settings.mtp or not shape.mtp_layers:
        return 0
    read = settings.batch * shape.embedding
    return ((2 + settings.parallel) * read + settings.parallel * _answer(shape, settings)) * F32_BYTES


def reader_output_bytes(drafter: Header, shape: Shape, target: Shape, settings: Settings) -> int:
    """Bytes of host RAM for a drafter of ``shape`` that reads the target's rows, beyond its first rows of logits.

    ``settings`` are the drafter's. The target's row of each layer that is read, for every token of a batch; the
    drafter's batch and what it gathers; its answers for every token of a pass where that pass encodes, else for those
    of a draft. Nothing for a drafter of another kind.
    """
    if drafter.architecture not in READERS:
        return 0
    batch, passed = settings.batch, cut(settings).ubatch
    features = len(read_layers(drafter)) * target.embedding
    if drafter.architecture == "eagle3":
        gathered = batch * features + (2 + settings.parallel) * batch * shape.embedding
    else:
        gathered = 2 * passed * features + batch * shape.embedding
    encodes = drafter.architecture == "eagle3" or not settings.era.fused_injection
    drafted = settings.parallel * max(drafted_rows(shape, settings), 1)
    rows = max(passed, drafted) if encodes else drafted
    answers = rows * _answer(shape, settings) - settings.parallel * shape.vocabulary
    return (batch * features + gathered + answers) * F32_BYTES


def _answer(shape: Shape, settings: Settings) -> int:
    """Numbers of four bytes of one row: logits and a hidden row; with samplers the chosen token and all candidates."""
    sampled = _SAMPLED * shape.vocabulary + 1 if settings.samples_drafts else 0
    return shape.vocabulary + shape.embedding + sampled


def drafted_rows(shape: Shape, settings: Settings) -> int:
    """Rows of each slot that a drafter chooses tokens from in one pass; 0 where it is none that reads the target's.

    Source: ``n_outputs_max_per_seq`` in ``common_base_params_to_speculative``, common/speculative.cpp.
    """
    if shape.architecture not in READERS:
        return 0
    return 1 + settings.n_max if shape.architecture == "dflash" else 1


def read_layers(drafter: Header) -> tuple[int, ...]:
    """Numbers of the target's layers whose input a drafter reads."""
    layers = drafter.metadata.get(f"{drafter.architecture}.target_layers")
    if drafter.architecture not in READERS or not isinstance(layers, tuple):
        return ()
    return tuple(layer for layer in layers if isinstance(layer, int))
