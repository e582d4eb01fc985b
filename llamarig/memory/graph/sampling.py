"""What choosing the tokens of a draft adds to a drafter's pass.

Source: ``build_sampling`` in src/llama-graph.cpp, ``llama_sampler_top_k_backend_apply`` in src/llama-sampler.cpp. The
engine reserves anew once a context has its samplers, which is after it printed its buffers for the first time.
"""

from __future__ import annotations

from typing import Final

from llamarig.memory.graph import ops
from llamarig.memory.graph.builder import Builder
from llamarig.memory.graph.tensors import Tensor

CANDIDATES: Final = 10
"""Tokens that a draft is chosen from; source: ``llama_sampler_init_top_k`` in common/speculative.cpp."""


def sample(b: Builder, logits: Tensor) -> None:
    """The best tokens of each slot's rows, out of a copy of all logits that is one row longer."""
    if not b.work.sampled:
        return
    width = logits.extent[0]
    longer = ops.pad_rows(logits, 1)
    for _ in range(b.work.sequences * min(b.work.sampled, b.tokens // b.work.sequences)):
        row = ops.reshape(ops.view(longer, (width, 1, 1, 1), packed=True), width)
        best = ops.top_k(row, CANDIDATES)
        found = ops.get_rows(ops.reshape(row, 1, width), best)
        found.is_output = best.is_output = True
        b.expand(found)
