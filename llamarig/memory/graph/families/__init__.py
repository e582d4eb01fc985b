"""One graph per family, by architecture.

A family is a module with ``build(b: Builder) -> None`` that makes the same tensors in the same order as the engine's
``build_arch_graph`` (src/models/<name>.cpp), and an entry below. It is written from the parts in
:mod:`llamarig.memory.graph.blocks` and the operations in :mod:`llamarig.memory.graph.ops`:

- What the engine's function gets from ``hparams`` is in ``b.shape`` and ``b.layer(block)``; what depends on the pass
  (tokens, outputs, cells, cache types) in ``b.work``. ``b.tokens`` are the pass's tokens.
- ``for block in b.layers():`` visits only the layers that are needed to meet the peak; the trunk's last is among them.
- A tensor is made by an operation and enters the graph when something that reads it is expanded. Call ``b.expand``
  where the engine calls ``ggml_build_forward_expand``: the order of nodes decides what lives at the same time.
  ``blocks.attend``, ``blocks.embeddings`` and ``blocks.head`` do it on their own.
- ``packed`` is False for a view that leaves gaps: whatever reads it makes a copy where the engine does (``ops.cont``).
- ``b.has(name)`` tells whether the file has a tensor, for what depends on it (biases, one joint QKV matrix, a gate).
- What stays on the host or is written by the caller is ``b.input``; a result that the caller reads is ``is_output``.
- Give an operation of the engine that writes over its input the name that ``IN_PLACE`` in
  :mod:`llamarig.memory.graph.allocator` has (``"unary"`` stands for silu, sigmoid, tanh and their kin; ``"norm"``,
  ``"l2_norm"``, ``"cont"``, ``"concat"`` are not in place).

Compare with the engine's own figure: tests/unit/memory/graph has the harness.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from llamarig.memory.graph.builder import Builder
from llamarig.memory.graph.families import (
    delta_net,
    drafters,
    gemma3n,
    gemma4,
    latent,
    llama4,
    mamba,
    mtp,
    short_convolution,
    talkie,
    variants,
)

Build = Callable[[Builder], None]

BUILDERS: Final[dict[str, Build]] = {
    **variants.BUILD,
    **dict.fromkeys(("qwen35", "qwen35moe", "qwen3next"), delta_net.build),
    **dict.fromkeys(("mamba", "mamba2"), mamba.pure),
    **dict.fromkeys(("nemotron_h", "nemotron_h_moe"), mamba.nemotron),
    **dict.fromkeys(("lfm2", "lfm2moe"), short_convolution.build),
    **dict.fromkeys(("deepseek2", "mistral4"), latent.build),
    "dflash": drafters.dflash,
    "eagle3": drafters.eagle3,
    "gemma3n": gemma3n.build,
    "gemma4": gemma4.build,
    "llama4": llama4.build,
    "falcon-h1": mamba.falcon_h1,
    "granitehybrid": mamba.granite,
    "jamba": mamba.jamba,
    "talkie": talkie.build,
}
"""The graph of each architecture that is known; another one is estimated by a closed formula."""

HEADS: Final[dict[str, Build]] = dict.fromkeys(("qwen35", "qwen35moe", "qwen3next"), mtp.build)
"""The graph of each architecture's MTP head that is known."""
