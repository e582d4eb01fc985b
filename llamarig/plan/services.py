"""How each service is started."""

from __future__ import annotations

import math

from llamarig.gguf import Header
from llamarig.memory.window import cut
from llamarig.plan.argv import argv
from llamarig.plan.environment import environment
from llamarig.plan.load import Load
from llamarig.plan.places import model_path
from llamarig.plan.router import presets
from llamarig.plan.settings import projector_card, settings_of
from llamarig.plan.types import ServicePlan
from llamarig.spec.host import HostSpec
from llamarig.spec.service import Service

SLACK = 1.25
"""MemoryMax over what the plan says: page tables, the allocator's waste, uploads of images."""

_START_BASE_S = 60
_LOAD_MIB_S = 100
"""Slowest disk that a default start timeout allows for."""


def service_plan(spec: HostSpec, name: str, load: Load, projector: Header | None) -> ServicePlan:
    """Arguments, environment, limits and what a proof may expect of the service ``name``."""
    service = spec.services[name]
    return ServicePlan(
        name=name,
        argv=argv(spec, name),
        environment=environment(spec, name),
        memory_max_mib=_memory_max(load) if service.memory_max_mib is None else service.memory_max_mib,
        start_timeout_s=service.start_timeout_s or _start_timeout(load),
        slots=service.parallel,
        context=cut(settings_of(spec, service)).cells,
        model_path=model_path(spec, service.model),
        modalities=_modalities(spec, name, projector),
        speculative=service.speculation is not None,
        files=_files(spec, service),
        presets=presets(spec, service, projector_card(spec, service) is not None),
    )


def _files(spec: HostSpec, service: Service) -> tuple[str, ...]:
    """Files that the arguments name together with something else, or in a file of their own."""
    found = [model_path(spec, adapter.model) for adapter in service.lora]
    for name in service.router.models if service.router is not None else ():
        projector = spec.models[name].projector
        found.append(model_path(spec, name))
        found += [model_path(spec, name, projector)] if projector is not None else []
    return tuple(found)


def _memory_max(load: Load) -> int:
    """MiB for systemd's MemoryMax; 0, no limit, when the header is not at hand."""
    return math.ceil(sum(load.ram.values()) * SLACK) if load.estimate is not None else 0


def _start_timeout(load: Load) -> int:
    """Seconds: a minute, and the time that a slow disk takes for the weights."""
    places = [load.ram, *load.cards.values()]
    weights = sum(place.get(term, 0.0) for place in places for term in ("weights", "draft-weights", "projector"))
    return _START_BASE_S + math.ceil(weights / _LOAD_MIB_S)


def _modalities(spec: HostSpec, name: str, projector: Header | None) -> tuple[str, ...]:
    """What the server says it can take; a projector whose header is not at hand is taken for a vision one."""
    if spec.models[spec.services[name].model].projector is None:
        return ("text",)
    if projector is None:
        return ("text", "vision")
    seen = projector.metadata
    kinds = {"vision": seen.get("clip.has_vision_encoder"), "audio": seen.get("clip.has_audio_encoder")}
    return ("text", *(kind for kind, there in kinds.items() if there is True))
