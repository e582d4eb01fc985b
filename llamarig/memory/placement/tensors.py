"""Which place a tensor of a file lies at, by its name."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from llamarig.memory.placement.layers import places
from llamarig.memory.settings import Settings
from llamarig.memory.shape import Shape
from llamarig.memory.split import Place

INPUTS = ("token_embd.", "per_layer_token_embd.", "position_embd.", "token_types.")
"""Beginnings of the names of tensors that the graph reads first; they stay on the host."""

FIRST_BLOCK = ("per_layer_model_proj.", "per_layer_proj_norm.")
"""Beginnings of the names of tensors that are loaded as part of the first block, without its number in their names."""

EXPERTS = r"\.ffn_(up|down|gate|gate_up)_(ch|)exps"
"""Tensors of experts; source: LLM_FFN_EXPS_REGEX in common/common.h."""


@lru_cache(maxsize=64)
def _compiled(overrides: tuple[tuple[str, Place], ...]) -> tuple[tuple[re.Pattern[str], Place], ...]:
    return tuple((re.compile(pattern), place) for pattern, place in overrides)


def block_of(name: str) -> int | None:
    """The 7 of ``blk.7.attn_q.weight``; None when the tensor belongs to no block."""
    if not name.startswith("blk."):
        return None
    number = name.split(".", 2)[1]
    return int(number) if number.isdecimal() else None


def overridden(settings: Settings, name: str) -> bool:
    """Whether an override sets the place of a tensor."""
    return any(pattern.search(name) for pattern, _ in _compiled(settings.overrides))


def placing(shape: Shape, settings: Settings) -> Callable[[str], Place]:
    """A function that gives the place of a tensor by its name.

    The first override whose pattern is found in the name counts, then the experts that stay on the host, then
    the block's card; tensors of the output are where the output is. Source: ``buft_for_tensor`` in
    src/llama-model-loader.cpp; ``--n-cpu-moe`` in common/arg.cpp is a list of such overrides, rendered last.
    """
    if settings.backend == "cpu":
        return lambda _name: None
    where = places(shape, settings)
    patterns = _compiled(settings.overrides)
    experts = re.compile(EXPERTS) if settings.cpu_experts else None

    def place(name: str) -> Place:
        for pattern, target in patterns:
            if pattern.search(name):
                return target
        block = block_of(name)
        if block is None:
            return None if name.startswith(INPUTS) else where[0 if name.startswith(FIRST_BLOCK) else -1]
        if experts is not None and block < settings.cpu_experts and experts.search(name):
            return None
        return where[min(block, len(where) - 1)]

    return place
