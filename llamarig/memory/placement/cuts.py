"""Tensor split: how the engine's Meta device cuts one dimension over the cards.

Source: ``llama_meta_device_get_split_state`` in src/llama-model.cpp.
"""

from __future__ import annotations

from functools import lru_cache
from math import lcm

from llamarig.memory.settings import Settings
from llamarig.memory.shape import Shape
from llamarig.memory.split import Split

SUPERBLOCK = 256
"""Elements of the longest block of the types that attention output matrices have (the K-quants)."""

_KERNEL_BLOCK = 128

UNCUT = frozenset(
    {
        "grok", "mpt", "plamo2", "minicpm3", "gemma3n", "mamba", "mamba2", "jamba", "falcon-h1", "olmo2", "olmoe",
        "deepseek2", "deepseek32", "deepseek4", "glm-dsa", "bitnet", "t5", "nemotron_h", "nemotron_h_moe",
        "granitehybrid", "lfm2", "lfm2moe", "minimax-01", "minimax-m2", "minimax-m3", "mistral4", "kimi-linear",
        "kimi-k3", "qwen3tts",
    }
)  # fmt: skip
"""Architectures that the engine does not split by tensors: ``llm_arch_supports_sm_tensor`` in src/llama-arch.cpp."""


@lru_cache(maxsize=4096)
def cut(size: int, grain: int, shares: tuple[float, ...], rotation: int) -> tuple[int, ...]:
    """``size`` elements in whole grains over the cards; the last one, counted from ``rotation`` on, takes the rest."""
    cards = len(shares)
    order = [(number + rotation) % cards for number in range(cards)]
    whole = sum(shares)
    parts = [0] * cards
    low = 0
    reached = 0.0
    for card in order[:-1]:
        reached += shares[card]
        high = int(size * reached / whole)
        high -= high % grain
        parts[card] = high - low
        low = high
    parts[order[-1]] = size - low
    return tuple(parts)


def rotation(shape: Shape, number: int, cards: int) -> int:
    """Where the cutting of block ``number`` begins: by turns within the blocks of its kind (``get_il_eff``)."""
    own = shape.layers[number]
    same = sum(layer.recurrent == own.recurrent and layer.sliding == own.sliding for layer in shape.layers[:number])
    return same % cards


def query_grain(shape: Shape, number: int, block: int, cards: int) -> int:
    """Query elements that stay together: the heads of one KV head, and whole blocks of the output matrix."""
    layer = shape.layers[number]
    together = layer.query_width // max(layer.kv_heads, 1)
    fine = block
    while fine < _KERNEL_BLOCK and fine * cards < together:
        fine *= 2
    return lcm(max(together, 1), fine)


def state_grain(head: int, block: int) -> int:
    """Inner elements of a recurrent layer that stay together: whole heads of its state."""
    return lcm(lcm(block, _KERNEL_BLOCK), max(head, 1))


def shared(size: int, parts: tuple[int, ...]) -> Split:
    """``size`` bytes in proportion to the elements of each card; what does not divide is rounded up."""
    whole = sum(parts)
    return Split(tuple(-(-size * part // whole) for part in parts)) if whole else mirrored(size, len(parts))


def mirrored(size: int, cards: int) -> Split:
    """The same ``size`` bytes on every card."""
    return Split((size,) * cards)


def kv_parts(shape: Shape, settings: Settings, number: int) -> tuple[int, ...]:
    """K elements of one token on each card: whole KV heads."""
    layer = shape.layers[number]
    grain = query_grain(shape, number, SUPERBLOCK, settings.cards)
    group = max(layer.heads // max(layer.kv_heads, 1), 1)
    return cut(layer.k_width, max(grain // group, 1), settings.shares, rotation(shape, number, settings.cards))


def state_parts(shape: Shape, settings: Settings, number: int) -> tuple[int, ...]:
    """Elements of a recurrent layer's stream on each card, in segments as wide as its keys."""
    keys = (shape.conv_width - shape.inner) // 2 or shape.inner
    head = shape.state_elements // shape.inner if shape.inner else 1
    return cut(keys, state_grain(head, SUPERBLOCK), settings.shares, rotation(shape, number, settings.cards))
