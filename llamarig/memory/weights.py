"""Where the weights lie."""

from __future__ import annotations

import re

from llamarig.gguf.header import Header, Tensor
from llamarig.memory.settings import Settings
from llamarig.memory.shape import Shape
from llamarig.memory.split import NOTHING, Split, first_on_device

_BLOCK = re.compile(r"blk\.([0-9]+)\.")
_INPUTS = ("token_embd", "per_layer_token_embd.", "position_embd.", "token_types.")


def _block(tensor: Tensor) -> int | None:
    match = _BLOCK.match(tensor.name)
    return int(match[1]) if match else None


def weight_bytes(header: Header, shape: Shape, settings: Settings) -> tuple[Split, Split]:
    """Bytes of the model's weights and, apart, of its MTP head.

    The token embedding stays on the host; a model without an output matrix uses it once more,
    on the card; MTP tensors are skipped unless MTP drafts; ``gpu_layers`` counts from the
    output downwards. Source: ``load_tensors`` in src/llama-model.cpp (``dev_input``,
    ``get_layer_buft_list``), TENSOR_DUPLICATED and TENSOR_SKIP in src/llama-model-loader.cpp.
    """
    output = len(shape.layers)
    first = first_on_device(shape, settings)
    mtp_from = len(shape.trunk)
    model = draft = NOTHING
    for tensor in header.tensors:
        block = _block(tensor)
        if block is not None and block >= mtp_from:
            if settings.mtp:
                draft = draft.plus(tensor.size, on_device=block >= first)
        elif tensor.name.startswith(_INPUTS):
            model = model.plus(tensor.size, on_device=False)
        else:
            model = model.plus(tensor.size, on_device=(output if block is None else block) >= first)
    embedding = header.by_name.get("token_embd.weight")
    if "output.weight" not in header.by_name and embedding is not None and first <= output:
        model = model.plus(embedding.size, on_device=True)
    return model, draft
