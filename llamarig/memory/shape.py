"""A model's dimensions, layer by layer, as the engine derives them from the header."""

from __future__ import annotations

import re
from dataclasses import dataclass

from llamarig.errors import RigError
from llamarig.gguf.header import Header
from llamarig.memory import families

_ARCHITECTURE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
MAX_LAYERS = 512
"""LLAMA_MAX_LAYERS in src/llama-hparams.h."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One block. Widths are elements per token."""

    k_width: int
    """0 when the layer keeps no K."""
    v_width: int
    query_width: int
    ff: int
    recurrent: bool = False
    sliding: bool = False
    mtp: bool = False
    heads: int = 0
    kv_heads: int = 0


@dataclass(frozen=True, slots=True)
class Shape:
    """What the formulas need to know of a model."""

    architecture: str
    layers: tuple[Layer, ...]
    embedding: int
    vocabulary: int
    conv_elements: int
    """f32 elements of one slot's convolution state, per recurrent layer (R)."""
    state_elements: int
    """f32 elements of one slot's recurrent state, per recurrent layer (S)."""
    inner: int
    """Width of a recurrent layer's own stream."""
    conv_width: int
    """Channels of its convolution."""
    window: int
    """Tokens of the sliding window; 0 when nothing slides."""
    trained_context: int
    head: int
    """Elements of one K head."""
    known: bool
    experts_used: int = 0
    expert_ff: int = 0
    shared_ff: int = 0

    @property
    def trunk(self) -> tuple[Layer, ...]:
        """Layers without the MTP head."""
        return tuple(layer for layer in self.layers if not layer.mtp)

    @property
    def mtp_layers(self) -> tuple[Layer, ...]:
        """Layers of the MTP head; empty when the file has none."""
        return tuple(layer for layer in self.layers if layer.mtp)


def read_shape(header: Header) -> Shape:
    """Derive the shape; source: ``llama_model_base::load_hparams`` in src/llama-model.cpp.

    An architecture that is not known is read as plain attention, with ``known`` False.
    Raises :class:`RigError` when a key that every model has is missing or makes no sense.
    """
    arch = header.architecture
    if not arch:
        raise RigError(what="the header has no general.architecture", fix="use a file that the engine can load")
    if _ARCHITECTURE.fullmatch(arch) is None:
        raise RigError(
            what=f"the header's general.architecture is no name: {arch[:80]!a}",
            fix="use a file that the engine can load",
        )
    header.require_all_shards()
    count = header.integer(".block_count")
    if not 0 < count <= MAX_LAYERS:
        raise RigError(what=f"the header claims {count} layers, not 1 to {MAX_LAYERS}")
    embedding = header.integer(".embedding_length")
    if embedding == 0:
        raise RigError(what=f"the header claims rows without elements ({arch}.embedding_length is 0)")
    layers = _layers(header, arch, count, embedding)
    conv, state, inner, width = _state_sizes(header, embedding)
    return Shape(
        architecture=arch,
        layers=layers,
        embedding=embedding,
        vocabulary=header.vocabulary,
        conv_elements=conv,
        state_elements=state,
        inner=inner,
        conv_width=width,
        window=_window(header, arch),
        trained_context=header.integer(".context_length", 0),
        head=_head_width(header, embedding, ".attention.key_length"),
        known=arch in families.KNOWN,
        experts_used=header.integer(".expert_used_count", 0),
        expert_ff=header.integer(".expert_feed_forward_length", 0),
        shared_ff=header.integer(".expert_shared_feed_forward_length", 0),
    )


def _head_width(header: Header, embedding: int, key: str, default: int = 0) -> int:
    heads = max(header.per_layer(".attention.head_count", 1, 0))
    if not heads:
        return 0
    return header.integer(key, default or embedding // heads)


def _window(header: Header, arch: str) -> int:
    rule = families.SLIDING.get(arch)
    return 0 if rule is None else header.integer(".attention.sliding_window", rule.window or 0)


def _sliding(header: Header, arch: str, count: int) -> list[bool]:
    """Which layers slide; source: ``llama_hparams::set_swa_pattern`` in src/llama-hparams.cpp."""
    rule = families.SLIDING.get(arch)
    if rule is None or not _window(header, arch):
        return [False] * count
    pattern = header.metadata.get(f"{arch}.attention.sliding_window_pattern")
    if isinstance(pattern, tuple):
        return [bool(item) for item in header.per_layer(".attention.sliding_window_pattern", count)]
    period = header.integer(".attention.sliding_window_pattern", rule.period)
    return [period == 0 or number % period < period - 1 for number in range(count)]


def _recurrent(header: Header, arch: str, count: int, mtp: int, kv_heads: tuple[int, ...]) -> list[bool]:
    """Which layers keep a state: ``is_recr_impl`` of each architecture."""
    if arch in families.INTERVAL:
        listed = header.metadata.get(f"{arch}.attention.recurrent_layers")
        if isinstance(listed, tuple):
            return [bool(item) for item in header.per_layer(".attention.recurrent_layers", count)]
        interval = header.integer(".full_attention_interval", 4)
        if interval == 0:
            raise RigError(what=f"the header claims attention in every 0th layer ({arch}.full_attention_interval)")
        return [number < count - mtp and (number + 1) % interval != 0 for number in range(count)]
    if arch in families.BY_KV_HEADS:
        return [heads == 0 for heads in kv_heads]
    return [arch in families.BOTH or arch in families.RECURRENT] * count


def _layers(header: Header, arch: str, count: int, embedding: int) -> tuple[Layer, ...]:
    mtp = header.integer(".nextn_predict_layers", 0)
    if not 0 <= mtp < count:
        raise RigError(what=f"the header claims {mtp} MTP layers of {count}")
    heads = header.per_layer(".attention.head_count", count, 0)
    kv_heads = header.per_layer(".attention.head_count_kv", count) if _has(header, arch) else heads
    ff = header.per_layer(".feed_forward_length", count, 0)
    recurrent = _recurrent(header, arch, count, mtp, kv_heads)
    _attends(arch, heads, kv_heads, recurrent)
    sliding = _sliding(header, arch, count)
    shared = header.integer(".attention.shared_kv_layers", 0)
    key = _head_width(header, embedding, ".attention.key_length")
    value = _head_width(header, embedding, ".attention.value_length")
    key_sliding = _head_width(header, embedding, ".attention.key_length_swa", key)
    value_sliding = _head_width(header, embedding, ".attention.value_length_swa", value)
    latent = arch in families.LATENT and ".attention.key_length_mla" in _suffixes(header, arch)
    layers = []
    for number in range(count):
        keeps = (not recurrent[number] or arch in families.BOTH) and number < count - shared
        if arch.startswith("nemotron_h") and ff[number]:
            keeps = recurrent[number] = False
        k = key_sliding if sliding[number] else key
        v = value_sliding if sliding[number] else value
        layers.append(
            Layer(
                k_width=k * kv_heads[number] if keeps else 0,
                v_width=v * kv_heads[number] if keeps and not latent else 0,
                query_width=k * heads[number],
                ff=ff[number],
                recurrent=recurrent[number],
                sliding=sliding[number],
                mtp=number >= count - mtp,
                heads=heads[number],
                kv_heads=kv_heads[number],
            )
        )
    return tuple(layers)


def _attends(arch: str, heads: tuple[int, ...], kv_heads: tuple[int, ...], recurrent: list[bool]) -> None:
    """Heads go with KV heads; some layers of a hybrid may have neither, but not all of a model with attention."""
    for number, (own, shared, keeps_state) in enumerate(zip(heads, kv_heads, recurrent, strict=True)):
        if not keeps_state and own == 0 < shared:
            raise RigError(what=f"the header claims {shared} KV heads and no head in layer {number} ({arch})")
    if not any(heads) and not all(recurrent):
        raise RigError(
            what=f"the header claims no attention heads ({arch}.attention.head_count is 0 or missing)",
            fix="use a file that the engine can load",
        )


def _has(header: Header, arch: str) -> bool:
    return f"{arch}.attention.head_count_kv" in header.metadata


def _suffixes(header: Header, arch: str) -> set[str]:
    return {key.removeprefix(arch) for key in header.metadata}


def _state_sizes(header: Header, embedding: int) -> tuple[int, int, int, int]:
    """R and S in f32 elements, inner width and convolution channels.

    Source: ``n_embd_r`` and ``n_embd_s`` in src/llama-hparams.cpp.
    """
    short = header.integer(".shortconv.l_cache", 0)
    if short:
        return embedding * (short - 1), 0, embedding, 3 * embedding
    inner = header.integer(".ssm.inner_size", 0)
    if not inner:
        return 0, 0, 0, 0
    kernel = header.integer(".ssm.conv_kernel", 0)
    state = header.integer(".ssm.state_size", 0)
    groups = header.integer(".ssm.group_count", 0)
    width = inner + 2 * groups * state
    return max(kernel - 1, 0) * width, state * inner, inner, width
