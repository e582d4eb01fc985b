"""Where the weights lie."""

from __future__ import annotations

from llamarig.gguf.header import Header
from llamarig.memory import families
from llamarig.memory.placement.layers import places
from llamarig.memory.placement.tensor_parts import parts_of
from llamarig.memory.placement.tensors import block_of, overridden, placing
from llamarig.memory.settings import Settings
from llamarig.memory.shape import Shape
from llamarig.memory.split import Split


def weight_bytes(header: Header, shape: Shape, settings: Settings) -> tuple[Split, Split]:
    """Bytes of the model's weights and, apart, of its MTP head.

    The token embedding stays on the host; a model without an output matrix uses it once more,
    where the output is, and some even on the host, unless the file is mapped; MTP tensors are skipped unless MTP
    drafts. Source: ``load_tensors`` in src/llama-model.cpp (``dev_input``, ``get_layer_buft_list``),
    TENSOR_DUPLICATED and TENSOR_SKIP in src/llama-model-loader.cpp.
    """
    place = placing(shape, settings)
    parts = settings.cards > 1 and settings.split_mode == "tensor"
    mtp_from = len(shape.trunk)
    model, draft = _Sum(settings.places), _Sum(settings.places)
    for tensor in header.tensors:
        block = block_of(tensor.name)
        of_mtp = block is not None and block >= mtp_from
        if of_mtp and not settings.mtp:
            continue
        where = place(tensor.name)
        into = draft if of_mtp else model
        if where is not None and parts:
            into.add(parts_of(header, shape, settings, tensor))
        else:
            into.put(where, tensor.size)
    embedding = header.by_name.get("token_embd.weight")
    output = places(shape, settings)[-1]
    tied = "output.weight" not in header.by_name and shape.architecture not in families.CACHELESS
    # An override holds for both uses, and one tensor in one kind of buffer is loaded once.
    tied = tied and not overridden(settings, "token_embd.weight")
    if embedding is not None and tied and output is not None:
        # In tensor split no pattern matches its name, so that every card holds all of it.
        for card in range(settings.cards) if parts else (output,):
            model.put(card, embedding.size)
    elif embedding is not None and tied and not settings.mapped and shape.architecture in families.TWICE:
        model.put(None, embedding.size)
    return model.split(), draft.split()


class _Sum:
    """A split under construction: a model has too many tensors to add frozen ones."""

    def __init__(self, cards: int) -> None:
        self.cards = [0] * cards
        self.host = 0

    def put(self, place: int | None, size: int) -> None:
        if place is None:
            self.host += size
        else:
            self.cards[place] += size

    def add(self, split: Split) -> None:
        for card, size in enumerate(split.cards):
            self.cards[card] += size

    def split(self) -> Split:
        return Split(tuple(self.cards), self.host)
