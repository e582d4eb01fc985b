"""Where the weights lie."""

from __future__ import annotations

from llamarig.gguf.header import Header
from llamarig.memory.settings import Settings
from llamarig.memory.shape import Shape
from llamarig.memory.split import Split, first_on_device

_INPUTS = ("token_embd", "per_layer_token_embd.", "position_embd.", "token_types.")


def _by_place(header: Header) -> tuple[dict[str, int], int, int]:
    """Bytes by block (the 7 of ``blk.7.attn_q.weight``), of the input tensors, and of all others."""
    blocks: dict[str, int] = {}
    inputs = rest = 0
    for tensor in header.tensors:
        name = tensor.name
        if name.startswith("blk."):
            number = name.split(".", 2)[1]
            blocks[number] = blocks.get(number, 0) + tensor.size
        elif name.startswith(_INPUTS):
            inputs += tensor.size
        else:
            rest += tensor.size
    return blocks, inputs, rest


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
    blocks, inputs, rest = _by_place(header)
    # Bytes on the card, and on the host.
    model, draft = [0, inputs], [0, 0]
    model[output < first] += rest
    for number, size in blocks.items():
        block = int(number) if number.isdecimal() else output
        if number.isdecimal() and block >= mtp_from:
            if settings.mtp:
                draft[block < first] += size
        else:
            model[block < first] += size
    embedding = header.by_name.get("token_embd.weight")
    if "output.weight" not in header.by_name and embedding is not None and first <= output:
        model[0] += embedding.size
    return Split(*model), Split(*draft)
