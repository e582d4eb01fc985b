"""Tensor split: each card's part of one tensor of the file, by its name.

Source: ``llama_meta_device_get_split_state`` in src/llama-model.cpp; what it does not name lies whole on every card.
"""

from __future__ import annotations

import re

from llamarig.gguf.header import Header, Tensor
from llamarig.gguf.tensor_types import BY_NAME
from llamarig.memory import families
from llamarig.memory.placement.cuts import cut, mirrored, query_grain, rotation, shared, state_grain
from llamarig.memory.placement.tensors import block_of
from llamarig.memory.settings import Settings
from llamarig.memory.shape import Shape
from llamarig.memory.split import Split

_FEED_FORWARD = re.compile(r"ffn_(up|gate|gate_up|down)(_exps)?\.(weight|bias)")
_ATTENTION = re.compile(r"attn_(q|k|v|qkv|gate|output|sinks)\.(weight|bias)")
_STATE = re.compile(r"(attn_qkv|attn_gate|ssm_out|ssm_conv1d|ssm_alpha|ssm_beta|ssm_ba)\.weight|ssm_dt\.bias|ssm_a")
_INNER = ("ffn_down.", "ffn_down_exps.", "attn_output.", "ssm_out.", "attn_sinks.", "ssm_dt.", "ssm_a")
"""Cut along the first dimension; the others along the second, their biases along their only one."""
_WHOLE = {"attn_output.bias", "ffn_down.bias", "ffn_down_exps.bias"}


def parts_of(header: Header, shape: Shape, settings: Settings, tensor: Tensor) -> Split:
    """Bytes of ``tensor`` on each card of a tensor split."""
    number = block_of(tensor.name)
    if number is None or number >= len(shape.layers):
        if tensor.name in ("output.weight", "output.bias"):
            axis = tensor.dims[-1]
            return shared(tensor.size, cut(axis, 1, settings.shares, len(shape.layers) % settings.cards))
        return mirrored(tensor.size, settings.cards)
    name = tensor.name.split(".", 2)[2]
    if name in _WHOLE:
        return mirrored(tensor.size, settings.cards)
    turn = rotation(shape, number, settings.cards)
    recurrent = shape.layers[number].recurrent
    if _FEED_FORWARD.fullmatch(name):
        block = _block(header, number, "ffn_down.weight", "ffn_down_exps.weight")
        pieces = _pieces(name, _axis(tensor, name), _expert_width(shape, name))
        grains = [_lcm_kernel(block)] * len(pieces)
    elif recurrent and _STATE.fullmatch(name):
        block = _block(header, number, "ssm_out.weight", "attn_output.weight")
        pieces, grains = _state(shape, name, _axis(tensor, name), block)
    elif not recurrent and _ATTENTION.fullmatch(name):
        block = _block(header, number, "attn_output.weight", "ssm_out.weight")
        query = query_grain(shape, number, block, settings.cards)
        pieces, grains = _attention(shape, number, name, _axis(tensor, name), query)
    else:
        return mirrored(tensor.size, settings.cards)
    found = [0] * settings.cards
    for (size, times), grain in zip(pieces, grains, strict=True):
        for card, part in enumerate(cut(size, max(grain, 1), settings.shares, turn)):
            found[card] += times * part
    return shared(tensor.size, tuple(found))


def _axis(tensor: Tensor, name: str) -> int:
    inner = name.startswith(_INNER) or len(tensor.dims) == 1
    return tensor.dims[0] if inner else tensor.dims[1]


def _block(header: Header, number: int, *names: str) -> int:
    for name in names:
        found = header.by_name.get(f"blk.{number}.{name}")
        if found is not None:
            return BY_NAME[found.type].block
    return 1


def _lcm_kernel(block: int) -> int:
    return state_grain(1, block)


def _expert_width(shape: Shape, name: str) -> int:
    return shape.expert_ff if "gate_up" in name else 0


def _pieces(name: str, axis: int, half: int) -> list[tuple[int, int]]:
    """Gate and up in one tensor are cut one by one."""
    return [(half, 2)] if "gate_up" in name and axis == 2 * half else [(axis, 1)]


def _attention(shape: Shape, number: int, name: str, axis: int, query: int) -> tuple[list[tuple[int, int]], list[int]]:
    layer = shape.layers[number]
    group = max(layer.heads // max(layer.kv_heads, 1), 1)
    if name.startswith("attn_q."):
        return [(axis, 1)], [2 * query if shape.architecture in families.GATED else query]
    if name.startswith(("attn_k.", "attn_v.")):
        return [(axis, 1)], [query // group]
    if name.startswith("attn_qkv."):
        width = axis - layer.k_width - layer.v_width
        return [(width, 1), (layer.k_width, 2)], [query, query // group]
    if name.startswith("attn_sinks."):
        return [(axis, 1)], [query * layer.heads // max(layer.query_width, 1)]
    return [(axis, 1)], [query if name.startswith("attn_output.") else 1]


def _state(shape: Shape, name: str, axis: int, block: int) -> tuple[list[tuple[int, int]], list[int]]:
    """A Gated DeltaNet layer: keys, queries and as many segments of values as there are values per key."""
    keys = (shape.conv_width - shape.inner) // 2
    head = shape.state_elements // shape.inner if shape.inner else 1
    grain = state_grain(head, block)
    if name.startswith(("ssm_dt", "ssm_a", "ssm_alpha", "ssm_beta", "ssm_ba")):
        # One element a value head; `ssm_ba` holds two.
        grain = grain // max(head, 1) * (2 if name.startswith("ssm_ba") else 1)
        keys //= max(head, 1)
    if shape.architecture == "qwen3next":
        joint = name.startswith(("attn_qkv", "ssm_conv1d"))
        return ([(keys, 2), (axis - 2 * keys, 1)], [grain, grain]) if joint else ([(axis, 1)], [grain])
    return ([(keys, axis // keys)], [grain]) if keys and axis % keys == 0 else ([(axis, 1)], [grain])
