"""LoRA adapters: two small matrices beside each weight that they change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llamarig.errors import RigError
from llamarig.gguf.header import Header
from llamarig.memory.placement.cuts import mirrored
from llamarig.memory.placement.tensors import placing
from llamarig.memory.settings import Settings
from llamarig.memory.shape import Shape
from llamarig.memory.split import NOTHING, Split
from llamarig.memory.units import F32_BYTES
from llamarig.memory.window import Window

_SUFFIXES = (".lora_a", ".lora_b")


@dataclass(frozen=True, slots=True)
class Adapters:
    """What the adapters of a server take together."""

    weights: Split
    widest: int
    """Elements of the widest row that an adapter adds to."""

    def compute_bytes(self, window: Window) -> int:
        """Bytes of the product that is held until it is added to the weight's own."""
        return self.widest * window.ubatch * F32_BYTES


def adapter_bytes(headers: Sequence[Header], header: Header, shape: Shape, settings: Settings) -> Adapters:
    """The adapters of ``headers`` laid on the model of ``header``: each pair lies where its base tensor does.

    Norms in an adapter are skipped. In tensor split no pattern matches an adapter's names, so every card holds
    all of it. Raises :class:`RigError` for a file that is no adapter, or one of another model. Source:
    ``llama_adapter_lora_init_impl`` in src/llama-adapter.cpp.
    """
    place = placing(shape, settings)
    parts = settings.cards > 1 and settings.split_mode == "tensor"
    found, widest = NOTHING, 0
    for adapter in headers:
        _check(adapter, shape)
        for tensor in adapter.tensors:
            base = tensor.name.removesuffix(_SUFFIXES[0]).removesuffix(_SUFFIXES[1])
            if base == tensor.name:
                if not tensor.name.endswith("_norm.weight"):
                    raise _wrong(f"its tensor {tensor.name!a} is no half of an adapter")
                continue
            if base not in header.by_name:
                raise _wrong(f"the model has no tensor {base!a}")
            where = place(base)
            on_cards = parts and where is not None
            found += mirrored(tensor.size, settings.cards) if on_cards else NOTHING.plus(tensor.size, where)
            if tensor.name.endswith(_SUFFIXES[1]):
                widest = max(widest, tensor.dims[-1])
    return Adapters(found, widest)


def _check(adapter: Header, shape: Shape) -> None:
    kind = adapter.metadata.get("general.type"), adapter.metadata.get("adapter.type")
    if kind != ("adapter", "lora"):
        raise RigError(
            what="a file given as adapter is none",
            why=f"its general.type is {kind[0]!a} and its adapter.type {kind[1]!a}, not 'adapter' and 'lora'",
            fix="use an adapter that convert_lora_to_gguf.py wrote",
        )
    if adapter.architecture != shape.architecture:
        raise _wrong(f"it is made for {adapter.architecture!a}, and the model is {shape.architecture!a}")


def _wrong(why: str) -> RigError:
    return RigError(
        what="an adapter does not belong to the model", why=why, fix="use the adapter's own base model, or another one"
    )
