"""What a server is asked to do, as far as it bears on memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from llamarig.memory.engines import CURRENT, Era

SNAPSHOT_TYPES = frozenset({"draft-mtp", "eagle3", "dflash"})
"""Speculation that keeps state snapshots in the target; source: ``need_n_rs_seq`` in common/common.h."""

NGRAM_TOKENS = {"ngram-mod": 64, "ngram-simple": 48}
"""Longest draft of the n-gram kinds; source: their defaults in common/common.h."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """A service's settings in the engine's own terms; defaults are the spec's."""

    context: int
    """Tokens over all slots."""
    backend: Literal["cuda", "cpu"] = "cuda"
    parallel: int = 1
    kv_unified: bool = False
    batch: int = 2048
    ubatch: int = 512
    cache_k: str = "f16"
    cache_v: str = "f16"
    flash_attention: bool = True
    speculation: str | None = None
    """The spec's ``speculation.type``."""
    n_max: int = 0
    """Longest draft of a model-based speculation."""
    draft_k: str = "f16"
    draft_v: str = "f16"
    ngram_default: bool = False
    """``--spec-default``: n-gram drafts of up to 64 tokens beside the other kind."""
    checkpoints: int = 0
    """Context checkpoints that a slot may keep in host RAM."""
    cache_ram_mib: int = 0
    gpu_layers: int | None = None
    """Layers on the card, the output counted as one; None: all of them."""
    attention_rotation: bool = True
    """Whether the engine may rotate K and V before it quantises them; LLAMA_ATTN_ROT_DISABLE turns it off."""
    mapped: bool = True
    """Whether the engine maps the model's file (``--load-mode mmap``) rather than reads it into buffers of its own."""
    era: Era = CURRENT
    """The engine's memory model."""
    cards: int = 1
    """Cards that the model is put on, in the order of ``--device``."""
    split_mode: Literal["layer", "tensor"] = "layer"
    """How several cards share it: whole layers, or a part of every tensor."""
    tensor_split: tuple[float, ...] = ()
    """Each card's share; empty: equal ones."""
    pipeline: bool = True
    """Whether a layer split may run four graphs at once; the server gives it up when memory is short."""
    cpu_experts: int = 0
    """Blocks, from the first, whose experts stay on the host (``--n-cpu-moe``)."""
    op_offload: bool = True
    """Whether a card computes long passes with weights that lie in RAM; GGML_OP_OFFLOAD_MIN_BATCH may raise the bar."""
    overrides: tuple[tuple[str, int | None], ...] = ()
    """Pattern and card (None: the host) of ``--override-tensor``; the first that a tensor's name matches counts."""

    @property
    def places(self) -> int:
        """Cards that hold anything: none on the CPU backend."""
        return 0 if self.backend == "cpu" else self.cards

    @property
    def shares(self) -> tuple[float, ...]:
        """Each card's share, equal ones when none are given."""
        return self.tensor_split or (1.0,) * self.cards

    @property
    def overridden(self) -> bool:
        """Whether any tensor's place is set by name."""
        return bool(self.overrides) or self.cpu_experts > 0

    @property
    def mtp(self) -> bool:
        """Whether the model's own multi-token-prediction head drafts."""
        return self.speculation == "draft-mtp"

    @property
    def snapshots(self) -> int:
        """State snapshots per slot that the speculation asks for, on top of the state itself."""
        return self.n_max if self.speculation in SNAPSHOT_TYPES else 0

    @property
    def samples_drafts(self) -> bool:
        """Whether a drafter's tokens are chosen where its logits are, as builds do unless they split by tensors.

        Source: ``set_sampler`` in src/llama-context.cpp, the default of ``--spec-draft-backend-sampling``.
        """
        return self.era.draft_sampling and self.split_mode != "tensor"

    @property
    def longest_draft(self) -> int:
        """Tokens of the longest draft over all kinds; source: ``common_speculative_n_max``, common/speculative.cpp."""
        longest = 64 if self.ngram_default else 0
        if self.speculation in NGRAM_TOKENS:
            return max(longest, NGRAM_TOKENS[self.speculation])
        return max(longest, self.n_max if self.speculation else 0)
