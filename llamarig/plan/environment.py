"""The environment of a server: which cards it sees, and what the spec adds."""

from __future__ import annotations

from llamarig.plan.settings import visible_cards
from llamarig.spec.host import HostSpec

UNLEARNED = "unlearned"
"""Stands in CUDA_VISIBLE_DEVICES for a card whose UUID nobody knows yet: with it CUDA sees no card at
all, which a proof catches, while leaving the variable out could put the model on the wrong card.
An apply puts the UUID in its place that the driver tells (compare/learn.py)."""

VISIBLE = "CUDA_VISIBLE_DEVICES"


def environment(spec: HostSpec, name: str) -> dict[str, str]:
    """Variables of the service ``name``; the spec's own win.

    Cards are named by UUID, in the order in which the arguments count them: ``CUDA0`` is the
    model's. MTMD_BACKEND_DEVICE places the projector; it works in every engine version that is supported.
    """
    service = spec.services[name]
    cards = visible_cards(spec, service)
    variables: dict[str, str] = {}
    if cards:
        known = [spec.gpus[card].uuid or f"{UNLEARNED}:{card}" for card in cards]
        variables["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
        variables[VISIBLE] = ",".join(known)
        models = service.router.models if service.router is not None else [service.model]
        seen = any(spec.models[model].projector is not None for model in models)
        if service.projector_gpu is not None and seen:
            variables["MTMD_BACKEND_DEVICE"] = f"CUDA{cards.index(service.projector_gpu)}"
    return variables | service.environment
