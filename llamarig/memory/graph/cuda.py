"""What a card allocates beside a tensor's data.

Flash attention's kernels for long passes read K and V in f16; a cache of any other type is copied first, behind the
result. Source: ``ggml_cuda_get_best_fattn_kernel`` in ggml/src/ggml-cuda/fattn.cu and
``ggml_cuda_flash_attn_ext_get_f16_extra_data`` in ggml/src/ggml-cuda/fattn-common.cuh.
"""

from __future__ import annotations

from typing import Final

from llamarig.memory.graph.tensors import Tensor
from llamarig.memory.units import F16_BYTES, F32_BYTES

ALIGNMENT: Final = 128
"""Bytes that tensors on a card are aligned to; source: ``ggml_backend_cuda_buffer_type_get_alignment``."""

_SAME_HEADS: Final = frozenset({40, 64, 72, 80, 96, 112, 128, 256, 512})
_OTHER_HEADS: Final = {192: 128, 320: 256, 576: 512}
"""Elements of V's heads by those of K's, where they differ."""
_GROUPED: Final = {192: 8, 320: 32, 512: 2, 576: 2}
"""Query heads that have to share one K head, by K's elements (a multiple of it for 192 and 320)."""
_KV_TYPES: Final = frozenset({"f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1"})
"""Types that a build with all quants reads; pairs that a build leaves out are refused before."""


def attend_on_card(attention: Tensor) -> None:
    """Note on a flash attention node what a card needs beside it, or that no card can compute it."""
    query, keys, values = attention.inputs[:3]
    if not _runs(query, keys, values):
        attention.host_only = True
        return
    tokens = query.extent[1]
    end = attention.elements * F32_BYTES
    same = values.root is not None and values.root is keys.root
    for source in (keys,) if same else (keys, values):
        if source.kind != "f16" and tokens > 1:
            end += -end % ALIGNMENT + source.elements * F16_BYTES
    attention.staging = end - attention.size


def _runs(query: Tensor, keys: Tensor, values: Tensor) -> bool:
    head, head_v = keys.extent[0], values.extent[0]
    if not {keys.kind, values.kind} <= _KV_TYPES:
        return False
    if head_v != _OTHER_HEADS.get(head, head) or not (head in _SAME_HEADS or head in _OTHER_HEADS):
        return False
    shared = query.extent[2] // keys.extent[2]
    if head in {192, 320}:
        return shared % _GROUPED[head] == 0
    return shared >= _GROUPED.get(head, 1)
