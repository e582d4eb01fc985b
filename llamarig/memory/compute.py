"""The compute buffer of the target: what one pass over a full window needs at its peak.

The engine reserves the worst pass once, at start (``sched_reserve`` in src/llama-context.cpp), and its
graph allocator reuses what is no longer read; so the buffer is the biggest sum of tensors
that live at the same time. Two places of a layer can be the peak: the feed-forward part, and
attention with a staged copy of the KV cache.
"""

from __future__ import annotations

from llamarig.memory import families
from llamarig.memory.logits import logit_bytes
from llamarig.memory.settings import Settings
from llamarig.memory.shape import Layer, Shape
from llamarig.memory.units import F16_BYTES, F32_BYTES, is_quantised
from llamarig.memory.window import Window

_ROTATED_HEAD = 64
"""K heads of a multiple of this many elements are rotated before they are quantised (src/llama-kv-cache.cpp)."""


def mask_bytes(shape: Shape, settings: Settings, window: Window) -> int:
    """Bytes of the attention masks as inputs: cells x tokens, f16 with flash attention, else f32.

    A model with sliding layers has one more for their cells. Source: ``build_attn_inp_kv`` in src/llama-graph.cpp.
    Eras before ``half_mask`` made them in f32 in either case.
    """
    half = settings.flash_attention and settings.era.half_mask
    return _masked_cells(shape, settings, window) * window.ubatch * (F16_BYTES if half else F32_BYTES)


def _masked_cells(shape: Shape, settings: Settings, window: Window) -> int:
    return window.cells + (window.sliding_cells(shape, settings) if shape.window else 0)


def _cast_bytes(shape: Shape, settings: Settings, window: Window) -> int:
    """Bytes of the masks' f16 copies, which eras before ``half_mask`` made for flash attention."""
    if settings.era.half_mask or not settings.flash_attention:
        return 0
    return _masked_cells(shape, settings, window) * window.ubatch * F16_BYTES


def input_bytes(shape: Shape, window: Window) -> int:
    """Bytes of the little inputs: four positions and two KV indices of 8 bytes a token.

    Source: ``build_inp_pos`` in src/llama-graph.cpp and ``build_input_k_idxs`` in src/llama-kv-cache.cpp.
    """
    positions = 4 if shape.architecture in families.GATED else 1
    return window.ubatch * (positions * 4 + 2 * 8)


def stage_bytes(layers: tuple[Layer, ...], kind_k: str, kind_v: str, window: Window) -> int:
    """Bytes of the f16 copy of one layer's K and V that CUDA's flash attention makes of any other type.

    Source: ``ggml_cuda_flash_attn_ext_get_f16_extra_data`` in ggml/src/ggml-cuda/fattn-common.cuh.
    """
    widest_k = max((layer.k_width for layer in layers), default=0) if kind_k != "f16" else 0
    widest_v = max((layer.v_width for layer in layers), default=0) if kind_v != "f16" else 0
    return window.streams * window.cells * (widest_k + widest_v) * F16_BYTES


def feed_forward_bytes(shape: Shape, layers: tuple[Layer, ...], window: Window) -> int:
    """Bytes at the peak of the feed-forward part: gate, up and their product, and two hidden rows.

    With experts: each used one's output and two of its inner rows, and the shared expert's
    three. Source: ``build_ffn`` and ``build_moe_ffn`` in src/llama-graph.cpp.
    """
    dense = max((3 * layer.ff for layer in layers), default=0)
    experts = shape.experts_used * (2 * shape.expert_ff + shape.embedding) + 3 * shape.shared_ff
    inner = experts if shape.experts_used and shape.expert_ff else dense
    return window.ubatch * F32_BYTES * (inner + 2 * shape.embedding)


def attention_bytes(shape: Shape, layers: tuple[Layer, ...], window: Window, *, rotated: bool) -> int:
    """Bytes at the peak of attention: the query, its result and two hidden rows.

    With an output gate the joint projection lives as long, which makes it twice as much; a
    rotated query is one more. Source: ``build_layer_attn`` in src/models/qwen35.cpp, ``build_attn``
    in src/llama-graph.cpp.
    """
    query = max((layer.query_width for layer in layers if layer.k_width), default=0)
    gated = shape.architecture in families.GATED
    rows = (4 if gated else 2) + (1 if rotated and gated else 0)
    return window.ubatch * F32_BYTES * (rows * query + 2 * shape.embedding)


def _rotated(shape: Shape, settings: Settings) -> bool:
    """Whether the query is held once more, rotated, when attention is at its peak.

    With an f32 mask the peak is where the mask is copied, before the query is rotated.
    """
    quantised = is_quantised(settings.cache_k) or is_quantised(settings.cache_v)
    era = settings.era
    rotates = settings.attention_rotation and era.rotation and era.half_mask
    return rotates and quantised and shape.head % _ROTATED_HEAD == 0


def compute_bytes(shape: Shape, settings: Settings, window: Window) -> int:
    """Bytes of the compute buffer on the card, or of the only one on the CPU backend.

    mask + inputs + max(feed-forward, stage + attention, recurrent layer), or the logits where they are more. The
    CPU's kernels stage nothing, and its buffer also holds the two hidden rows that a card leaves to the host.
    """
    layers, era = shape.trunk, settings.era
    extra = 2 * window.ubatch * shape.embedding * F32_BYTES if settings.backend == "cpu" else 0
    staged = settings.backend == "cuda" and settings.flash_attention and era.staging
    stage = stage_bytes(layers, settings.cache_k, settings.cache_v, window) if staged else 0
    attention = attention_bytes(shape, layers, window, rotated=_rotated(shape, settings))
    if not settings.flash_attention:
        attention += _scores_bytes(shape, window)
    hidden = 2 * window.ubatch * shape.embedding * F32_BYTES
    mask, cast = mask_bytes(shape, settings, window), _cast_bytes(shape, settings, window)
    kept = cast or mask  # the f32 mask ends with the copy; the mask that every layer reads stays
    rest = max(feed_forward_bytes(shape, layers, window), linear_bytes(shape, settings, window))
    prefill = input_bytes(shape, window) + max(kept + rest, mask + cast + stage + attention)
    if not era.outputs_only:
        whole = window.ubatch * shape.embedding * F32_BYTES + logit_bytes(shape, settings, window.ubatch)
        return extra + max(prefill, whole)
    return extra + max(prefill, hidden + logit_bytes(shape, settings))


def _scores_bytes(shape: Shape, window: Window) -> int:
    """Without flash attention: heads x cells x tokens of scores in f32."""
    query = max((layer.query_width for layer in shape.trunk if layer.k_width), default=0)
    heads = query // shape.head if shape.head else 0
    return heads * window.cells * window.ubatch * F32_BYTES


def linear_bytes(shape: Shape, settings: Settings, window: Window) -> int:
    """Bytes at the peak of a recurrent layer; 0 when there is none.

    Per token the convolution's input and output, the layer's stream and its gate, and two hidden rows;
    per slot the state as it was, as it becomes and each snapshot, and the convolution's state.
    Source: ``build_layer_attn_linear`` in src/models/qwen35.cpp; it gives the engine's own lines for a tiny model
    on the CPU backend to 0.1 MiB.
    """
    if not any(layer.recurrent for layer in shape.trunk):
        return 0
    rows = 2 * (shape.conv_width + shape.inner + shape.embedding)
    snapshots = settings.snapshots if shape.architecture in families.ROLLBACK else 0
    states = (2 + snapshots) * shape.state_elements + shape.conv_elements
    return F32_BYTES * (window.ubatch * rows + settings.parallel * states)


def host_compute_bytes(shape: Shape, settings: Settings, window: Window) -> int:
    """Bytes of the host's compute buffer beside a card: the mask, the inputs and two hidden rows.

    Source: the split of the graph after the embedding, which stays on the CPU.
    """
    hidden = 2 * window.ubatch * shape.embedding * F32_BYTES
    return mask_bytes(shape, settings, window) + input_bytes(shape, window) + hidden
