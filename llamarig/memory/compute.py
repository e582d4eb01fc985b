"""The compute buffers of a model whose graph is not known: an upper bound from its tensors.

A graph that is known is simulated (:mod:`llamarig.memory.graph`). For any other, each matrix of a layer is taken to
leave its result until the layer ends, which the engine's allocator does not; with the caller's inputs, what attention
needs besides and the logits on top, the bound lies above every graph that is known.
"""

from __future__ import annotations

from llamarig.gguf.header import Header, Tensor
from llamarig.memory.logits import logit_bytes
from llamarig.memory.settings import Settings
from llamarig.memory.shape import Layer, Shape
from llamarig.memory.units import F16_BYTES, F32_BYTES
from llamarig.memory.window import Window

_HIDDEN_ROWS = 4
"""Hidden rows of a token beside a layer's results: what it reads, its norm, a sum and a residual."""

_INDEX_BYTES = 8
_POSITIONS = 4
"""Numbers of a position at most, 4 bytes each."""


def mask_bytes(shape: Shape, settings: Settings, window: Window) -> int:
    """Bytes of the attention masks as the caller writes them: cells x tokens, f16 with flash attention, else f32.

    A model with sliding layers has one more for their cells. Source: ``build_attn_inp_kv`` in src/llama-graph.cpp.
    Eras before ``half_mask`` made them in f32 in either case.
    """
    half = settings.flash_attention and settings.era.half_mask
    return _masked_cells(shape, settings, window) * window.ubatch * (F16_BYTES if half else F32_BYTES)


def _masked_cells(shape: Shape, settings: Settings, window: Window) -> int:
    return window.cells + (window.sliding_cells(shape, settings) if shape.window else 0)


def input_bytes(shape: Shape, settings: Settings, window: Window) -> int:
    """Bytes of the little inputs: positions, and rows of each cache; without flash attention V has one a value.

    Source: ``build_inp_pos`` in src/llama-graph.cpp and ``build_input_k_idxs`` in src/llama-kv-cache.cpp.
    """
    widest = 1 if settings.flash_attention else max((layer.v_width for layer in shape.layers), default=1)
    caches = 2 if shape.window else 1
    return window.ubatch * (_POSITIONS * 4 + caches * _INDEX_BYTES * (1 + max(widest, 1)))


def attention_bytes(layers: tuple[Layer, ...], settings: Settings, window: Window, kinds: tuple[str, str]) -> int:
    """Bytes that attention needs beside its results.

    With flash attention f16 copies of one layer's K and V of any other type, and of the mask where it is f32; without
    it, scores of all heads in f32 and a copy of what stands for V in latent attention. Sources:
    ``ggml_cuda_flash_attn_ext_get_f16_extra_data`` in ggml/src/ggml-cuda/fattn-common.cuh, ``build_attn_mha`` in
    src/llama-graph.cpp.
    """
    cells = window.streams * window.cells
    if not settings.flash_attention:
        heads = max((layer.heads for layer in layers), default=0)
        latent = max((layer.k_width for layer in layers if not layer.v_width), default=0)
        return window.cells * (heads * window.ubatch * F32_BYTES + window.streams * latent * F32_BYTES)
    copied = [kind for kind in kinds if kind == "f32" or (kind != "f16" and settings.backend == "cuda")]
    widest = max((max(layer.k_width, layer.v_width) for layer in layers), default=0)
    mask = 0 if settings.era.half_mask else 2 * window.cells * window.ubatch * F16_BYTES
    return len(copied) * cells * widest * F16_BYTES + mask


def layer_bytes(header: Header, shape: Shape, settings: Settings, window: Window, number: int) -> int:
    """Bytes of all results of one layer together, as if none gave way to another.

    A row for each output of its matrices (of each used expert's), the query three times more (with positions, rotated,
    and what comes of it), K and V once more, and the widest matrix's once more for its activation. A recurrent layer
    has its convolution's and its own rows three times, and for each slot its states as they were, as they become,
    and each snapshot.
    """
    layer = shape.layers[number]
    outputs = [_outputs(tensor, shape) for tensor in _matrices(header, number)]
    if not outputs:
        outputs = _usual_outputs(shape, layer)
    rows = sum(outputs) + max(outputs) + 3 * layer.query_width + layer.k_width + layer.v_width
    rows += _HIDDEN_ROWS * shape.embedding
    states = 0
    if layer.recurrent:
        rows += 3 * (shape.conv_width + shape.inner)
        states = (2 + settings.snapshots) * (shape.state_elements + shape.conv_elements)
    return F32_BYTES * (_tokens(settings, window) * rows + settings.parallel * states)


def _tokens(settings: Settings, window: Window) -> int:
    return window.ubatch + settings.parallel


def _matrices(header: Header, number: int) -> list[Tensor]:
    names = header.block_tensors.get(number, frozenset())
    tensors = (header.by_name[f"blk.{number}.{name}"] for name in names)
    return [tensor for tensor in tensors if len(tensor.dims) > 1]


def _outputs(tensor: Tensor, shape: Shape) -> int:
    """Output elements of a matrix for one token."""
    if "_exps." in tensor.name or "_chexps." in tensor.name:
        return tensor.dims[1] * max(shape.experts_used, 1)
    outputs = tensor.dims[1]
    for more in tensor.dims[2:]:
        outputs *= more
    return outputs * (3 if "ffn_gate_inp." in tensor.name else 1)


def _usual_outputs(shape: Shape, layer: Layer) -> list[int]:
    """The same for a header that lists no tensors: those of plain attention and of what its keys say of experts."""
    ff = max(layer.ff, shape.experts_used * shape.expert_ff)
    experts = shape.experts_used * shape.embedding
    return [2 * layer.query_width, layer.k_width, layer.v_width, ff, ff, shape.shared_ff, experts, shape.embedding]


def per_layer_bytes(header: Header, settings: Settings, window: Window) -> int:
    """Bytes of the rows of a second embedding that every layer gets a part of, read and scaled; 0 without one."""
    tensor = header.by_name.get("per_layer_token_embd.weight")
    return 4 * tensor.dims[0] * _tokens(settings, window) * F32_BYTES if tensor else 0


def compute_bytes(header: Header, shape: Shape, settings: Settings, window: Window) -> int:
    """Upper bound of the compute buffer on a card that holds everything, or of the only one on the CPU backend."""
    trunk = shape.trunk
    largest = max(layer_bytes(header, shape, settings, window, number) for number in range(len(trunk)))
    attention = attention_bytes(trunk, settings, window, (settings.cache_k, settings.cache_v))
    rows = None if settings.era.outputs_only else window.ubatch
    return (
        host_compute_bytes(header, shape, settings, window) + attention + largest + logit_bytes(shape, settings, rows)
    )


def host_compute_bytes(header: Header, shape: Shape, settings: Settings, window: Window) -> int:
    """Upper bound of the host's compute buffer beside a card: the inputs, and hidden rows of each token.

    Source: the split of the graph after the embedding, which stays on the CPU.
    """
    joined = 2 * header.integer(".n_deepstack_layers", 0)  # a picture's rows, handed to several layers at once
    hidden = (_HIDDEN_ROWS + joined) * _tokens(settings, window) * shape.embedding * F32_BYTES
    inputs = mask_bytes(shape, settings, window) + input_bytes(shape, settings, window)
    mask = 0 if settings.era.half_mask else mask_bytes(shape, settings, window)
    return inputs + mask + hidden + per_layer_bytes(header, settings, window)
