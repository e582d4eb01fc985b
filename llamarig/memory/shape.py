"""A model's dimensions, layer by layer, as the engine derives them from the header."""

from __future__ import annotations

import re
from dataclasses import dataclass

from llamarig.errors import RigError
from llamarig.gguf.header import Header
from llamarig.memory import families, patterns

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
    k_head: int = 0
    """Elements of one K head."""
    v_head: int = 0
    index_k: int = 0
    """Elements of the indexer's key; 0 when the layer keeps none."""
    index_v: int = 0
    """Elements that the indexer's cache keeps beside the key without need."""
    keeps: bool = False
    """Whether the layer has its place in a cache, be it an empty one (deci's layers without heads)."""
    compression: int = 0
    """Tokens that one compressed key stands for; 0 when the layer compresses none."""


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
    index_head: int = 0
    """Elements of the indexer's head, where attention is sparse."""

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
    trunk = count - _mtp(header, count)
    layers = _layers(header, trunk, count, embedding)
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
        window=patterns.window(header, trunk),
        trained_context=header.integer(".context_length", 0),
        head=_head_width(header, embedding, ".attention.key_length"),
        known=_known(header),
        experts_used=_experts_used(header),
        expert_ff=header.integer(".expert_feed_forward_length", 0),
        shared_ff=header.integer(".expert_shared_feed_forward_length", 0),
        index_head=header.integer(".attention.indexer.key_length", 0),
    )


def _known(header: Header) -> bool:
    """Whether the layout is known; a dflash drafter on deepseek4's blocks keeps another one."""
    arch = header.architecture
    return arch in families.KNOWN and not (arch == "dflash" and header.integer(".hyper_connection.count", 0))


def _experts_used(header: Header) -> int:
    """Experts that a token goes through: some where there are any, and no more than the header says there are.

    Source: the assertions on ``n_expert_used`` in ``load_hparams``, src/llama-model.cpp.
    """
    count, used = header.integer(".expert_count", 0), header.integer(".expert_used_count", 0)
    routed = any("ffn_gate_inp.weight" in names for names in header.block_tensors.values())
    if 0 < count < used or ((count or routed) and not used):
        raise RigError(
            what=f"the header claims {used} used experts of {count}", fix="use a file that the engine can load"
        )
    return used


def _mtp(header: Header, count: int) -> int:
    """Layers of the MTP head at the end of the stack."""
    arch = header.architecture
    mtp = header.integer(".nextn_predict_layers", 0)
    if arch in families.BORROWING:
        return 0
    if not 0 <= mtp < count:
        raise RigError(what=f"the header claims {mtp} MTP layers of {count}")
    if arch in families.COMPRESSED and f"blk.{count - mtp}.nextn.eh_proj.weight" not in header.by_name:
        return 0
    return mtp


def _head_width(header: Header, embedding: int, key: str) -> int:
    """Elements of a head; none in a model whose first layer has no heads, as ``load_hparams`` has it."""
    heads = header.per_layer(".attention.head_count", 1, 0)[0]
    if not heads and header.architecture != "plamo2":
        return 0
    return header.integer(key, embedding // heads if heads else 0)


def _layers(header: Header, trunk: int, count: int, embedding: int) -> tuple[Layer, ...]:
    arch = header.architecture
    heads = header.per_layer(".attention.head_count", count, 0)
    kv_heads = header.per_layer(".attention.head_count_kv", count) if _has(header, "head_count_kv") else heads
    ff = header.per_layer(".feed_forward_length", count, 0)
    recurrent = patterns.recurrent(header, trunk, count, kv_heads, ff)
    sliding = patterns.sliding(header, trunk, count, recurrent)
    kept = families.KEPT_LAYERS.get(arch, count - header.integer(".attention.shared_kv_layers", 0))
    keeps = patterns.attends(header, kept, count, recurrent, ff)
    _attends(arch, heads, kv_heads, recurrent)
    _shares(arch, heads, kv_heads, [own or not state for own, state in zip(keeps, recurrent, strict=True)], ff)
    indexed = patterns.indexed(header, trunk, count)
    key = _head_width(header, embedding, ".attention.key_length")
    value = _head_width(header, embedding, ".attention.value_length")
    if arch == "kimi-k3":
        value = header.integer(".attention.kv_lora_rank")
    key_sliding = header.integer(".attention.key_length_swa", key)
    value_sliding = header.integer(".attention.value_length_swa", value)
    latent = arch in families.COMPRESSED or (arch in families.LATENT and _has(header, "key_length_mla"))
    index = header.integer(".attention.indexer.key_length") if any(indexed) else 0
    ratios = header.per_layer(".attention.compress_ratios", count) if arch in families.COMPRESSED else (0,) * count
    layers = []
    for number in range(count):
        k = key_sliding if sliding[number] else key
        v = value_sliding if sliding[number] else value
        layers.append(
            Layer(
                k_width=k * kv_heads[number] if keeps[number] else 0,
                v_width=v * kv_heads[number] if keeps[number] and not latent else 0,
                query_width=k * heads[number],
                ff=ff[number],
                recurrent=recurrent[number],
                sliding=sliding[number],
                mtp=number >= trunk,
                heads=heads[number],
                kv_heads=kv_heads[number],
                k_head=k,
                v_head=v,
                index_k=index if indexed[number] else 0,
                index_v=v if indexed[number] and not latent else 0,
                keeps=keeps[number],
                compression=ratios[number],
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


def _shares(
    arch: str, heads: tuple[int, ...], kv_heads: tuple[int, ...], attends: list[bool], ff: tuple[int, ...]
) -> None:
    """Where heads attend there are KV heads that they share.

    deci has layers of a linear map in place of attention, nemotron_h ones that are a feed-forward part alone; source:
    ``build_arch_graph`` in src/models/deci.cpp and nemotron-h.cpp.
    """
    if arch == "deci":
        return
    for number, (own, shared, asks) in enumerate(zip(heads, kv_heads, attends, strict=True)):
        if arch.startswith("nemotron_h") and ff[number]:
            continue
        if asks and own > 0 == shared:
            raise RigError(
                what=f"the header claims {own} heads and no KV head in layer {number} ({arch})",
                fix="use a file that the engine can load",
            )


def _has(header: Header, key: str) -> bool:
    return f"{header.architecture}.attention.{key}" in header.metadata


def _state_sizes(header: Header, embedding: int) -> tuple[int, int, int, int]:
    """R and S in f32 elements, inner width and convolution channels.

    Source: ``n_embd_r`` and ``n_embd_s`` in src/llama-hparams.cpp, in their order.
    """
    heads = header.per_layer(".attention.head_count", 1, 0)[0]
    kernel = header.integer(".ssm.conv_kernel", 0)
    wkv = header.integer(".wkv.head_size", 0)
    if wkv:
        shifts = header.integer(".token_shift_count", 2)
        return shifts * embedding, embedding * wkv, embedding, embedding
    short = header.integer(".shortconv.l_cache", 0)
    if short:
        return embedding * (short - 1), 0, embedding, 3 * embedding
    delta = header.integer(".kda.head_dim", 0)
    if delta:
        stream = heads * delta
        return 3 * (kernel - 1 if kernel else 3) * stream, delta * stream, stream, 3 * stream
    if header.architecture == "minimax-01":
        head = _head_width(header, embedding, ".attention.key_length")
        return 0, head * head * heads, head * heads, 0
    inner = header.integer(".ssm.inner_size", 0)
    if not inner:
        return 0, 0, 0, 0
    state = header.integer(".ssm.state_size", 0)
    groups = header.integer(".ssm.group_count", 0)
    width = inner + 2 * groups * state
    return max(kernel - 1, 0) * width, state * inner, inner, width
