"""Settings with which the engine itself gives up at its start, whatever memory there is."""

from __future__ import annotations

from collections.abc import Iterator

from llamarig.memory import Estimate
from llamarig.memory.units import is_quantised
from llamarig.plan.types import Finding
from llamarig.spec.service import Service

_FUSED = frozenset({"phi3"})
"""Architectures with so few tensors a layer that the graph of a quantised, rotated cache has more nodes than the
engine's limit of 8 a tensor: build 10454 ended in ``GGML_ASSERT`` (ggml/src/ggml-impl.h) for a model of 14B with two
slots. Source of the limit: ``llama_context::graph_max_nodes`` in src/llama-context.cpp."""


def engine_limits(name: str, service: Service, found: Estimate) -> Iterator[Finding]:
    """Known aborts of the engine."""
    quantised = is_quantised(service.kv_cache.k) or is_quantised(service.kv_cache.v)
    if found.architecture in _FUSED and quantised and service.parallel > 1:
        yield Finding(
            "engine-aborts",
            "error",
            f"service {name}: the engine ends at its start with a model of the architecture {found.architecture}, a "
            "quantised KV cache and more than one slot: its graph gets bigger than the engine allows",
            "use kv-cache {k: f16, v: f16}, or parallel: 1",
            name,
        )
