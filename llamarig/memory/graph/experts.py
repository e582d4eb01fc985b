"""The part of a layer that has experts. Source: ``build_moe_ffn`` in src/llama-graph.cpp."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from llamarig.memory.graph import ops
from llamarig.memory.graph.blocks import feed_forward
from llamarig.memory.graph.builder import Builder
from llamarig.memory.graph.tensors import Tensor

Gating: TypeAlias = Literal["softmax", "sigmoid", "softmax_weight", "sqrt_softplus"]
"""How the router's logits become probabilities (``llama_expert_gating_func_type``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Routing:
    """How a family's experts are chosen, weighed and computed; defaults are the usual ones."""

    gating: Gating = "softmax"
    normed: bool = True
    """Whether the weights of the chosen experts are made to sum up to one."""
    scaled: bool = False
    """Whether they are then multiplied by a number of the header."""
    groups: int = 1
    """Groups of experts, of which ``groups_used`` are chosen first."""
    groups_used: int = 1
    weighed_before: bool = False
    """Whether the input is multiplied by the weights, instead of the output (llama4)."""
    selects_logits: bool = False
    """Whether experts are chosen by their logits (llama4)."""


USUAL = Routing()


def experts(  # noqa: PLR0913 - what the engine's function is given
    b: Builder, source: Tensor, block: int, routing: Routing = USUAL, *, ff: int = 0, logits: Tensor | None = None
) -> Tensor:
    """The sum of the chosen experts' outputs, one row a token.

    ``ff`` is an expert's inner width, by default the header's; ``logits`` are the router's where the family computes
    them itself (``probs_in``).
    """
    tokens = source.extent[1]
    used = b.shape.experts_used
    count = _count(b, block)
    width = source.extent[0]
    if logits is None:
        logits = ops.mul_mat(b.matrix(block, "ffn_gate_inp", width, count), source)
    if b.has(f"blk.{block}.ffn_gate_inp.bias"):
        logits = ops.add(logits, b.weight(f"blk.{block}.ffn_gate_inp.bias", count, block=block))
    probabilities = _gate(logits, routing)
    chosen = ops.argsort_top_k(_selection(b, block, logits, probabilities, routing, count), used)
    weights = ops.get_rows(ops.reshape(probabilities, 1, count, tokens), chosen)
    weights = b.expand(_weigh(weights, routing, used, tokens))
    inner = ops.reshape(source, width, 1, tokens)
    if routing.weighed_before:
        inner = ops.mul(ops.repeat(inner, width, used, tokens), weights)
    ff = ff or b.shape.expert_ff or b.layer(block).ff
    inner = _inner(b, inner, chosen, block, ff)
    outputs = _through(b, inner, chosen, f"blk.{block}.ffn_down_exps", width)
    if not routing.weighed_before:
        outputs = ops.mul(outputs, weights)
    return _sum(b, b.expand(outputs), used)


def _count(b: Builder, block: int) -> int:
    """Experts of a layer: what the header says, or the router's rows."""
    router = b.header.by_name.get(f"blk.{block}.ffn_gate_inp.weight")
    return b.header.integer(".expert_count", router.dims[1] if router else 0)


def _through(b: Builder, source: Tensor, chosen: Tensor, name: str, rows: int) -> Tensor:
    """The chosen of the matrices ``<name>.weight`` times ``source``, plus their biases where the model has them."""
    block = int(name.split(".")[1])
    count = _count(b, block)
    matrices = b.weight(f"{name}.weight", source.extent[0], rows, count, block=block)
    result = ops.mul_mat_id(matrices, source, chosen)
    if not b.has(f"{name}.bias"):
        return result
    return ops.elementwise("add_id", result, b.weight(f"{name}.bias", rows, count, block=block), chosen)


def _gate(logits: Tensor, routing: Routing) -> Tensor:
    if routing.gating == "softmax":
        return ops.elementwise("soft_max", logits)
    if routing.gating == "sigmoid":
        return ops.elementwise("unary", logits)
    if routing.gating == "sqrt_softplus":
        return ops.elementwise("sqrt", ops.elementwise("unary", logits))
    return logits


def _selection(  # noqa: PLR0913, PLR0917 - all of them decide
    b: Builder, block: int, logits: Tensor, probabilities: Tensor, routing: Routing, count: int
) -> Tensor:
    """What experts are chosen by: their probability, with the model's bias, in the best groups alone."""
    bias = f"blk.{block}.exp_probs_b.bias"
    if routing.selects_logits:
        return logits
    found = probabilities
    if b.has(bias):
        found = ops.add(probabilities, b.weight(bias, count, block=block))
    if routing.groups > 1:
        found = _best_groups(found, routing, count)
    return found


def _best_groups(found: Tensor, routing: Routing, count: int) -> Tensor:
    tokens = found.extent[1]
    each = count // routing.groups
    grouped = ops.reshape(found, each, routing.groups, tokens)
    best = ops.argsort_top_k(grouped, 2)
    scores = ops.get_rows(ops.reshape(grouped, 1, each, routing.groups, tokens), best)
    sums = ops.sum_rows(ops.reshape(scores, 2, routing.groups, tokens))
    groups = ops.argsort_top_k(ops.reshape(sums, routing.groups, tokens), routing.groups_used)
    kept = ops.get_rows(grouped, groups)
    masked = ops.set_rows(ops.elementwise("fill", grouped), kept, groups)
    return ops.reshape(masked, count, tokens)


def _weigh(weights: Tensor, routing: Routing, used: int, tokens: int) -> Tensor:
    if routing.gating == "softmax_weight":
        weights = ops.elementwise("soft_max", ops.reshape(weights, used, tokens))
        weights = ops.reshape(weights, 1, used, tokens)
    if routing.normed:
        weights = ops.reshape(weights, used, tokens)
        total = ops.clamp(ops.sum_rows(weights))
        weights = ops.reshape(ops.elementwise("div", weights, total), 1, used, tokens)
    return ops.elementwise("scale", weights) if routing.scaled else weights


def _inner(b: Builder, source: Tensor, chosen: Tensor, block: int, ff: int) -> Tensor:
    """Gate times up, from one joint matrix where the model has that."""
    name = f"blk.{block}.ffn"
    if b.has(f"{name}_gate_up_exps.weight"):
        joint = _through(b, source, chosen, f"{name}_gate_up_exps", 2 * ff)
        half = (ff, *joint.extent[1:])
        return ops.gated(ops.view(joint, half), ops.view(joint, half))
    up = _through(b, source, chosen, f"{name}_up_exps", ff)
    if not b.has(f"{name}_gate_exps.weight", default=True):
        return ops.elementwise("unary", up)
    return ops.gated(_through(b, source, chosen, f"{name}_gate_exps", ff), up)


def _sum(b: Builder, outputs: Tensor, used: int) -> Tensor:
    """Add up the experts' rows: views first, so that they keep the outputs alive until the last is added."""
    width, _, tokens, _ = outputs.extent
    rows = [b.expand(ops.view(outputs, (width, tokens, 1, 1))) for _ in range(used)]
    total = rows[0]
    for row in rows[1:]:
        total = b.expand(ops.add(total, row))
    return ops.cont(total) if used == 1 else total


def shared_expert(b: Builder, source: Tensor, block: int) -> Tensor:
    """The expert that every token goes through, times its gate where the model has one."""
    name = f"blk.{block}.ffn_up_shexp.weight"
    known = b.header.by_name.get(name)
    width = known.dims[1] if known else b.shape.shared_ff
    result = feed_forward(
        b, source, block, width=width, gate="ffn_gate_shexp", up="ffn_up_shexp", down="ffn_down_shexp"
    )
    if b.has(f"blk.{block}.ffn_gate_inp_shexp.weight"):
        gate = ops.mul_mat(b.matrix(block, "ffn_gate_inp_shexp", source.extent[0], 1), source)
        result = ops.mul(result, ops.elementwise("unary", gate))
    return result
