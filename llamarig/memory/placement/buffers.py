"""Compute buffers on each card and on the host, from the buffer of one card that holds everything.

What changes with placement: how often inputs lie on a card, and what is brought there to compute with.
"""

from __future__ import annotations

from math import ceil, log2

from llamarig.gguf.header import Header
from llamarig.memory.compute import compute_bytes, host_compute_bytes
from llamarig.memory.draft_compute import draft_compute_bytes
from llamarig.memory.graph.reserve import head_is_known, is_known, reserve, reserve_head
from llamarig.memory.kv import kv_by_layer
from llamarig.memory.placement.layers import copies, places
from llamarig.memory.placement.tensors import block_of, placing
from llamarig.memory.settings import Settings
from llamarig.memory.shape import Shape
from llamarig.memory.split import NOTHING, Split
from llamarig.memory.units import F32_BYTES
from llamarig.memory.window import Window

ALLREDUCE_SCRATCH = 32 << 20
"""Bytes on each card of a tensor split over two, in a build without NCCL; source: GGML_CUDA_AR_COPY_MAX_BYTES in
ggml/src/ggml-cuda/allreduce.cu."""

_BORROWED = 4
"""Largest weights that may be on the card at once, with what gaps between them take."""


def target_buffers(header: Header, shape: Shape, settings: Settings, window: Window) -> Split:
    """Bytes of the target's compute buffers; without cards its only one is on the host.

    An architecture whose graph is known is simulated. For another one: as a pipeline every card has each input and the
    hidden row of the card before it four times, and the host its inputs; in tensor split each card's buffer is as
    big as one card's alone (``ggml_backend_meta_buffer_type_get_alloc_size`` in ggml/src/ggml-backend-meta.cpp).
    Source of the copies: pass 5 of ``ggml_backend_sched_split_graph`` in ggml/src/ggml-backend.cpp.
    """
    if is_known(shape):
        return reserve(header, shape, settings, window)
    alone = compute_bytes(header, shape, settings, window)
    if settings.backend == "cpu":
        return Split(host=alone)
    beside = host_compute_bytes(header, shape, settings, window)
    more = (copies(shape, settings) - 1) * beside
    brought = brought_bytes(header, shape, settings, window)
    cards = tuple(alone + more + (brought if card == 0 else 0) for card in range(settings.cards))
    return Split(cards, (alone if brought else beside) + more)


def draft_buffers(header: Header, shape: Shape, settings: Settings, window: Window) -> Split:
    """Bytes of the MTP context's compute buffers: on the card of the MTP head, and on the host."""
    if settings.mtp and shape.mtp_layers and head_is_known(shape):
        return reserve_head(header, shape, settings, window)
    alone = draft_compute_bytes(header, shape, settings, window)
    if not alone:
        return NOTHING
    if settings.backend == "cpu":
        return Split(host=alone)
    host = host_compute_bytes(header, shape, settings, window)
    place = places(shape, settings)[len(shape.layers) - 1]
    if settings.split_mode == "tensor" and place is not None:
        return Split((alone,) * settings.cards, host)
    more = (copies(shape, settings) - 1) * host
    return NOTHING.plus(alone + more, place or 0).plus(host + more)


def brought_bytes(header: Header, shape: Shape, settings: Settings, window: Window) -> int:
    """Upper bound of what the first card is brought for a pass from layers that lie on the host; 0 without any.

    Cards compute long passes with weights that lie in RAM, and with the cache of such layers; both are copied into
    the compute buffer, one run of nodes at a time. Source: ``op_offload`` in the scheduler,
    ``ggml_backend_cuda_device_offload_op`` in ggml/src/ggml-cuda/ggml-cuda.cu.
    """
    where = places(shape, settings)
    cache = max(
        (size for number, size in enumerate(kv_by_layer(shape, settings, window)) if where[number] is None), default=0
    )
    place = placing(shape, settings)
    weights = (
        tensor.size for tensor in header.tensors if block_of(tensor.name) is not None and place(tensor.name) is None
    )
    largest = sorted(weights, reverse=True)[:_BORROWED]
    # In latent attention K and V are brought, although both are views of the same rows.
    return 2 * cache + sum(largest)


def reduction_bytes(shape: Shape, settings: Settings, window: Window) -> Split:
    """Bytes on each card of a tensor split, in which the cards' partial sums meet; nothing otherwise.

    One buffer a step of the reduction, as big as the biggest sum: a hidden row per token, and with experts one for
    each that is used; two cards have the scratch of the copies besides. A draft context has its own. Source:
    ``max_tmp_size`` in ggml/src/ggml-backend-meta.cpp; ``ggml_cuda_ar_pipeline_init`` in
    ggml/src/ggml-cuda/allreduce.cu.
    """
    if settings.cards == 1 or settings.split_mode != "tensor" or settings.backend == "cpu":
        return NOTHING
    row = window.ubatch * shape.embedding * F32_BYTES * max(shape.experts_used, 1)
    scratch = ALLREDUCE_SCRATCH if settings.cards == 2 else 0  # noqa: PLR2004 - two cards alone have it
    contexts = 2 if settings.mtp else 1
    return Split((contexts * (ceil(log2(settings.cards)) * row + scratch),) * settings.cards)
