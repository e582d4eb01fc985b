"""Where the weights lie."""

from __future__ import annotations

from llamarig.gguf.header import Header
from llamarig.memory.settings import Settings
from llamarig.memory.shape import Shape
from llamarig.memory.split import Split, first_on_device

_INPUTS = ("token_embd", "per_layer_token_embd.", "position_embd.", "token_types.")


def _block(name: str) -> int | None:
    """The number in ``blk.7.attn_q.weight``; None for a tensor of no block."""
    number = name[4:].partition(".")[0] if name.startswith("blk.") else ""
    return int(number) if number.isdecimal() else None


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
    # Bytes on the card, and on the host.
    model, draft = [0, 0], [0, 0]
    for tensor in header.tensors:
        block = _block(tensor.name)
        if block is not None and block >= mtp_from:
            if settings.mtp:
                draft[block < first] += tensor.size
        elif tensor.name.startswith(_INPUTS):
            model[1] += tensor.size
        else:
            model[(output if block is None else block) < first] += tensor.size
    embedding = header.by_name.get("token_embd.weight")
    if "output.weight" not in header.by_name and embedding is not None and first <= output:
        model[0] += embedding.size
    return Split(*model), Split(*draft)
