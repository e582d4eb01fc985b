"""Which types a model's cache can have."""

from __future__ import annotations

from typing import NamedTuple

from llamarig.errors import RigError
from llamarig.gguf.tensor_types import BY_NAME
from llamarig.memory import families
from llamarig.memory.shape import Shape
from llamarig.memory.units import KV_TYPES


class Kinds(NamedTuple):
    """The types of K and V."""

    k: str
    v: str


def require_types(shape: Shape, kinds: Kinds) -> None:
    """Raise :class:`RigError` for types that the engine does not start with.

    A head is whole blocks; with latent attention K and V are of one type. Source: ``llama_init_from_model`` in
    src/llama-context.cpp.
    """
    for kind in kinds:
        if kind not in KV_TYPES:
            raise RigError(what=f"{kind!r} is no KV cache type", fix=f"use one of {', '.join(KV_TYPES)}")
    attending = [layer for layer in shape.trunk if layer.k_width]
    if not attending:
        return
    if kinds.k != kinds.v and (shape.architecture in families.COMPRESSED or not any(x.v_width for x in attending)):
        raise RigError(
            what=f"K in {kinds.k} and V in {kinds.v} do not go together in this model ({shape.architecture})",
            why="its attention keeps one compressed row for both",
            fix="set kv-cache.k and kv-cache.v to the same type",
        )
    for letter, kind, head in (
        *(("K", kinds.k, layer.k_head) for layer in attending),
        *(("V", kinds.v, layer.v_head) for layer in attending if layer.v_width),
    ):
        block = BY_NAME[kind.upper()].block
        if head % block:
            raise RigError(
                what=f"{kind} cannot hold this model's {letter} heads of {head} elements",
                why=f"it stores blocks of {block}",
                fix="use f16",
            )
