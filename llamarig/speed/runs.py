"""The catalog's measured runs as work, and what the model says of each."""

from __future__ import annotations

import math
from typing import Final

from llamarig.catalog.gpus import cards
from llamarig.catalog.speeds import MeasuredModel, Run, speeds
from llamarig.gguf.tensor_types import BY_NAME
from llamarig.memory.units import F16_BYTES, is_quantised
from llamarig.speed.kernels import class_of
from llamarig.speed.predict import decode_tok_s, prefill_tok_s
from llamarig.speed.rates import rates_of
from llamarig.speed.work import Cache, Matrices, Work

DECODE: Final = "decode"
PREFILL: Final = "prefill"


def work_of_run(run: Run) -> Work:
    """The work of a run, whose file is known by its size and the type of most of its weights.

    The embedding is taken off the file; the rest is spread evenly over all other weights, but for the output, whose
    bits are given, and for experts, which are all of one type.
    """
    model = speeds().models[run.model]
    kind = class_of(run.dense_type or run.type)
    stored = BY_NAME[run.type]
    experts = Matrices(model.experts * stored.size / stored.block, model.experts)
    body = run.file_gb * 1e9 - model.output * (run.embedding_bits + run.output_bits) / 8 - experts.size
    a_weight = body / (model.matrices + model.draft)
    drafts = bool(run.n_max and model.draft)
    return Work(
        dense={kind: Matrices(a_weight * model.matrices, model.matrices)},
        layers=model.layers,
        output={kind: Matrices(model.output * run.output_bits / 8, model.output)},
        experts={class_of(run.type): experts} if model.experts else {},
        expert_share=model.expert_share,
        draft={kind: Matrices(a_weight * model.draft, model.draft)} if drafts else {},
        caches=(_cache(model.kv_elements, run.kv, model.attention_flops),),
        draft_cache=_draft_cache(model) if drafts else None,
        state=model.state_bytes,
    )


def _cache(elements: float, kind: str, flops: float) -> Cache:
    stored = BY_NAME[kind.upper()]
    return Cache(elements * stored.size / stored.block, elements, flops, quantised=is_quantised(kind))


def _draft_cache(model: MeasuredModel) -> Cache:
    """The draft's cache is f16 unless asked otherwise; its share of the operations is that of its elements."""
    elements = model.draft_kv_elements
    return Cache(elements * F16_BYTES, elements, model.attention_flops * elements / model.kv_elements)


def kind_of(run: Run) -> str:
    """Whether a run was timed while it generated or while it read."""
    return DECODE if run.decode_tok_s else PREFILL


def measured(run: Run) -> float:
    """Its tokens a second."""
    return run.decode_tok_s or run.prefill_tok_s or math.nan


def predicted(run: Run, fitted: dict[str, float] | None = None) -> float:
    """What the model says of it, with the catalog's parameters or with ``fitted``."""
    work, rates = work_of_run(run), rates_of(run.card, cards()[run.card], fitted, power_limit_w=run.power_limit_w)
    if run.decode_tok_s:
        return decode_tok_s(work, rates, n_max=run.n_max, acceptance=run.acceptance, depth=run.depth)
    found = prefill_tok_s(work, rates, ubatch=run.ubatch, prompt=run.prompt)
    return math.nan if found is None else found


def fitted_runs() -> list[Run]:
    """Those that the parameters are fitted to."""
    return [run for run in speeds().runs if run.fit]
