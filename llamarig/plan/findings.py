"""What a spec and a header show besides sizes."""

from __future__ import annotations

import math
from collections.abc import Iterator

from llamarig.memory import Estimate
from llamarig.memory.engines import of_build
from llamarig.plan.engine_limits import engine_limits
from llamarig.plan.load import Load
from llamarig.plan.projector_findings import projector_findings
from llamarig.plan.services import SLACK
from llamarig.plan.settings import placed_on, visible_cards
from llamarig.plan.types import Finding
from llamarig.spec.host import HostSpec
from llamarig.spec.service import Service


def service_findings(spec: HostSpec, name: str, load: Load) -> Iterator[Finding]:
    """Everything worth saying about one service, its load's own findings first."""
    service = spec.services[name]
    yield from load.findings
    yield from _no_card(spec, name, service)
    yield from _cards(spec, name, service)
    yield from projector_findings(spec, name)
    if service.listen.keyless is not None:
        yield Finding(
            "keyless",
            "note",
            f"service {name} serves without keys: {service.listen.keyless.reason}",
            "remove keyless when that no longer holds",
            name,
        )
    if service.unsafe_args:
        yield Finding(
            "unsafe-args",
            "warning",
            f"service {name} passes raw arguments that the schema keeps out: {' '.join(service.unsafe_args)}",
            "remove unsafe-args unless you know what each of them opens",
            name,
        )
    if load.estimate is not None:
        yield from _memory_max(name, service, load)
        yield from engine_limits(name, service, load.estimate)
        yield from _model(spec, name, service, load.estimate)


def _memory_max(name: str, service: Service, load: Load) -> Iterator[Finding]:
    """A limit that the service passes while it loads ends in a kill, again and again."""
    needed = sum(load.ram.values())
    if service.memory_max_mib is not None and service.memory_max_mib < needed:
        yield Finding(
            "memory-max-too-small",
            "error",
            f"service {name} needs {needed:,.0f} MiB of RAM, and memory-max-mib ends it at "
            f"{service.memory_max_mib:,}: {math.ceil(needed) - service.memory_max_mib:,} MiB too few",
            f"raise memory-max-mib to {math.ceil(needed * SLACK):,} or more, or remove it: the plan sets that itself",
            name,
        )


def _no_card(spec: HostSpec, name: str, service: Service) -> Iterator[Finding]:
    if spec.engine.backend == "cuda" and placed_on(spec, service) is None:
        yield Finding(
            "no-gpu",
            "error",
            f"service {name} names no card, and the engine is built for CUDA",
            "add `gpu: NAME`, or set engine.backend: cpu",
            name,
        )


def _cards(spec: HostSpec, name: str, service: Service) -> Iterator[Finding]:
    for card in visible_cards(spec, service):
        if spec.gpus[card].uuid is None:
            yield Finding(
                "uuid-unknown",
                "note",
                f"the UUID of card {card} is not in the spec: an apply takes that of the card at its bus id from the "
                f"driver, binds service {name} to it, and refuses another card there from then on",
                f"to choose the card yourself write its UUID into gpus.{card}.uuid (`nvidia-smi -L` on the host)",
                name,
            )


def _model(spec: HostSpec, name: str, service: Service, found: Estimate) -> Iterator[Finding]:
    if not found.known:
        yield _unknown_architecture(spec, name, service, found)
    elif not found.compute_checked:
        yield Finding(
            "compute-approximate",
            "note",
            f"compute buffers of the architecture {found.architecture} follow the general form and were not compared "
            "with the engine",
            "compare with the engine's own lines after the first start",
            name,
        )
    if note := of_build(spec.engine.build_number).note:
        yield Finding(
            "engine-memory-model",
            "note",
            note,
            "compare with the engine's own lines after the first start, or build one that was compared",
            name,
        )
    if found.trained_context and found.slot_context > found.trained_context:
        yield Finding(
            "context-beyond-training",
            "warning",
            f"a slot of service {name} holds {found.slot_context:,} tokens, and the model was trained for "
            f"{found.trained_context:,}",
            "lower context, or set up RoPE scaling as the model's makers say",
            name,
        )
    speculation = service.speculation
    if found.mtp and (speculation is None or speculation.type != "draft-mtp"):
        yield Finding(
            "mtp-head-unused",
            "note",
            f"the file of model {service.model} has an MTP head that service {name} does not use; the engine says "
            "`unused tensor`, which is harmless",
            "set speculation: {type: draft-mtp} to draft with it",
            name,
        )


def _unknown_architecture(spec: HostSpec, name: str, service: Service, found: Estimate) -> Finding:
    cards = visible_cards(spec, service)
    if cards:
        reserved = all(spec.gpus[card].reserve_mib is not None for card in cards)
    else:
        reserved = spec.memory is not None and "reserve_mib" in spec.memory.model_fields_set
    where = "reserve-mib of the card" if cards else "memory.reserve-mib"
    return Finding(
        "unknown-architecture",
        "warning" if reserved else "error",
        f"the memory layout of the architecture {found.architecture!r} is not known; the plan assumes plain "
        "attention in every layer",
        f"leave room for what the plan cannot know: set {where}",
        name,
    )
