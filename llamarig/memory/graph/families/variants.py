"""The architectures that :mod:`llamarig.memory.graph.families.plain` covers, each with its differences from llama."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from llamarig.memory.graph import blocks, ops
from llamarig.memory.graph.builder import Builder
from llamarig.memory.graph.experts import Gating, Routing, experts, shared_expert
from llamarig.memory.graph.families import plain
from llamarig.memory.graph.families.plain import Feed, Variant
from llamarig.memory.graph.tensors import Tensor

CAPPED: Final = ("scale", "unary", "scale")
"""Logits through a hyperbolic tangent."""


def routed(routing: Routing) -> Feed:
    """Experts and, where the model has one, a shared expert; a dense part in layers without a router."""

    def feed(b: Builder, source: Tensor, block: int) -> Tensor:
        if not b.has(f"blk.{block}.ffn_gate_inp.weight", default=bool(b.shape.experts_used)):
            return blocks.feed_forward(b, source, block)
        result = experts(b, source, block, _as_given(b, routing))
        if b.has(f"blk.{block}.ffn_up_shexp.weight", default=bool(b.shape.shared_ff)):
            result = ops.add(result, shared_expert(b, source, block))
        return result

    return feed


def _as_given(b: Builder, routing: Routing) -> Routing:
    """With the number that the header multiplies the weights by; 0 and 1 are none."""
    return replace(routing, scaled=b.number("expert_weights_scale") not in {0.0, 1.0})


_GATES: Final[dict[int, Gating]] = {1: "softmax", 2: "sigmoid", 3: "softmax_weight", 4: "sqrt_softplus"}
"""``llama_expert_gating_func_type`` in src/llama-hparams.h."""


def by_header(b: Builder, gating: Gating = "softmax") -> Feed:
    """Experts as the header says: gate (``gating`` when it does not say), sum of the weights, groups."""
    header, arch = b.header, b.shape.architecture
    return routed(
        Routing(
            gating=_GATES.get(header.integer(".expert_gating_func", 0), gating),
            normed=bool(header.metadata.get(f"{arch}.expert_weights_norm", False)),
            groups=header.integer(".expert_group_count", 1) or 1,
            groups_used=header.integer(".expert_group_used_count", 1) or 1,
        )
    )


def _sigmoid(b: Builder, source: Tensor, block: int) -> Tensor:
    return by_header(b, "sigmoid")(b, source, block)


def _slides(b: Builder, block: int) -> bool:
    return b.layer(block).sliding or not b.shape.window


def _not_every_fourth(_b: Builder, block: int) -> bool:
    return (block + 1) % 4 != 0


_EXPERTS = Variant(feed=routed(Routing()))
_GRANITE = Variant(feed=routed(Routing()), residual_scaled=True, logits=("scale",))

VARIANTS: Final[dict[str, Variant]] = {
    "qwen3moe": _EXPERTS,
    "qwen2moe": Variant(feed=routed(Routing(normed=False))),
    "gemma": Variant(embedding_scaled=True, query_scaled=True),
    "gemma2": Variant(embedding_scaled=True, query_scaled=True, norms="both", soft_cap=True, logits=CAPPED),
    "gemma3": Variant(embedding_scaled=True, query_scaled=True, norms="both"),
    "gpt-oss": Variant(feed=routed(Routing(gating="softmax_weight", normed=False)), late_rows=True),
    "cohere2": Variant(mean=True, parallel=True, rope=_slides, logits=("scale",)),
    "olmo2": Variant(norms="after"),
    "exaone4": Variant(norms="after", rope=_slides),
    "smollm3": Variant(rope=_not_every_fourth),
    "seed_oss": Variant(),
    "phi3": Variant(query_scaled=True, residual_first=True),
    "granite": _GRANITE,
    "granitemoe": _GRANITE,
    "glm4": Variant(norms="both"),
    "glm4moe": Variant(feed=_sigmoid),
}

BUILD: Final[dict[str, Callable[[Builder], None]]] = {
    name: partial(plain.build, variant=variant) for name, variant in VARIANTS.items()
}
