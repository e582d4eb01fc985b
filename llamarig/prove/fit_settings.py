"""The settings that the engine's fit tool answers for, whatever the service's own are."""

from __future__ import annotations

from dataclasses import replace

from llamarig.memory import Settings
from llamarig.plan.settings import settings_of
from llamarig.spec.host import HostSpec
from llamarig.spec.service import Service


def fit_settings(spec: HostSpec, service: Service) -> Settings:
    """On the CPU backend, without speculation, a KV cache in parts, and logits for a whole pass.

    Source: ``common_fit_print`` in common/fit.cpp, and the flags that tools/fit-params takes.
    """
    own = settings_of(spec, service)
    return replace(own, backend="cpu", kv_unified=False, speculation=None, n_max=0, ngram_default=False)
