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


def _normed_by_header(b: Builder, source: Tensor, block: int) -> Tensor:
    gating = _GATES.get(b.header.integer(".expert_gating_func", 0), "softmax")
    return routed(Routing(gating=gating))(b, source, block)


def _sigmoid(b: Builder, source: Tensor, block: int) -> Tensor:
    return by_header(b, "sigmoid")(b, source, block)


def _slides(b: Builder, block: int) -> bool:
    return b.layer(block).sliding or not b.shape.window


def _not_every_fourth(_b: Builder, block: int) -> bool:
    return (block + 1) % 4 != 0


def _header(b: Builder, source: Tensor, block: int) -> Tensor:
    return by_header(b)(b, source, block)


_EXPERTS = Variant(feed=routed(Routing()))
_UNWEIGHED = Variant(feed=routed(Routing(normed=False)))
_BY_HEADER = Variant(feed=_header)
_GRANITE = Variant(feed=routed(Routing()), embedding_scaled=True, residual_scaled=True, logits=("scale",))
_MEAN = Variant(mean=True)

VARIANTS: Final[dict[str, Variant]] = {
    **dict.fromkeys(("apertus", "arcee", "exaone", "internlm2", "maincoder", "seed_oss"), plain.LLAMA),
    **dict.fromkeys(("qwen2", "qwen2vl", "qwen3", "qwen3vl"), plain.LLAMA),
    **dict.fromkeys(("ernie4_5", "ernie4_5-moe", "llama", "qwen3moe", "qwen3vlmoe"), _EXPERTS),
    "mistral3": Variant(feed=routed(Routing()), tempered=True),
    **dict.fromkeys(("deepseek", "olmoe", "qwen2moe"), _UNWEIGHED),
    **dict.fromkeys(("bailingmoe2", "dots1"), _BY_HEADER),
    **dict.fromkeys(("granite", "granitemoe", "minicpm"), _GRANITE),
    **dict.fromkeys(("hunyuan-dense", "hunyuan_vl"), Variant(turned_first=True)),
    **dict.fromkeys(("nemotron", "starcoder2"), _MEAN),
    "hunyuan-moe": Variant(feed=routed(Routing()), turned_first=True),
    "minimax-m2": Variant(feed=_normed_by_header),
    "exaone-moe": Variant(feed=_header, rope=_slides),
    "command-r": Variant(mean=True, parallel=True, logits=("scale",)),
    "cohere2": Variant(mean=True, parallel=True, rope=_slides, logits=("scale",)),
    "gemma": Variant(embedding_scaled=True, query_scaled=True),
    "gemma2": Variant(embedding_scaled=True, query_scaled=True, norms="both", soft_cap=True, logits=CAPPED),
    "gemma3": Variant(embedding_scaled=True, query_scaled=True, norms="both"),
    "gpt-oss": Variant(feed=routed(Routing(gating="softmax_weight", normed=False)), late_rows=True),
    "olmo2": Variant(norms="after"),
    "exaone4": Variant(norms="after", rope=_slides),
    "smollm3": Variant(rope=_not_every_fourth),
    "phi3": Variant(query_scaled=True, residual_first=True),
    "phimoe": Variant(feed=routed(Routing()), query_scaled=True, residual_first=True),
    "glm4": Variant(norms="both", late_in_layer=True),
    "afmoe": Variant(feed=_sigmoid, embedding_scaled=True, norms="both", late_in_layer=True, rope=_not_every_fourth),
    "mimo2": Variant(feed=routed(Routing(gating="sigmoid")), attention_scaled=True),
    "step35": Variant(feed=_sigmoid, late_rows=True),
    "glm4moe": Variant(feed=_sigmoid),
}

BUILD: Final[dict[str, Callable[[Builder], None]]] = {
    name: partial(plain.build, variant=variant) for name, variant in VARIANTS.items()
}
