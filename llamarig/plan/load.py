"""What one service takes on which card, and in RAM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from llamarig.errors import RigError
from llamarig.gguf import Header
from llamarig.memory import Beside, Estimate, estimate, projector_mib
from llamarig.memory.process import CUDA_RESIDUE_MIB, host_base_mib
from llamarig.memory.units import MIB
from llamarig.plan.settings import placed_on, settings_of
from llamarig.plan.types import Finding
from llamarig.spec.host import HostSpec
from llamarig.spec.models import ModelFile

Headers = Mapping[str, Header | None]
"""By model name; ``<model>/projector`` for projectors."""


@dataclass(slots=True)
class Load:
    """MiB by card and term, and in RAM."""

    cards: dict[str, dict[str, float]] = field(default_factory=dict)
    ram: dict[str, float] = field(default_factory=dict)
    ram_detail: dict[str, float] = field(default_factory=dict)
    estimate: Estimate | None = None
    """None when the header is not at hand."""
    findings: list[Finding] = field(default_factory=list)

    def put(self, card: str | None, term: str, mib: float) -> None:
        """Add to a card, or to RAM when ``card`` is None."""
        place = self.ram if card is None else self.cards.setdefault(card, {})
        place[term] = place.get(term, 0.0) + mib


def file_mib(file: ModelFile, header: Header | None) -> float | None:
    """MiB of a file: as the spec pins it, or as its header says; None when neither is known."""
    if isinstance(file.size, int):
        return file.size / MIB
    return header.minimum_size / MIB if header is not None else None


def load_of(spec: HostSpec, name: str, headers: Headers) -> Load:
    """What the service ``name`` takes; problems become findings, never exceptions."""
    service = spec.services[name]
    card = placed_on(spec, service)
    load = Load()
    header = headers.get(service.model)
    if header is None:
        _without_header(load, spec, name, card)
    else:
        try:
            _with_header(load, spec, name, headers, header)
        except RigError as error:
            load.findings.append(Finding("settings-refused", "error", _joined(error), error.fix, name))
    _projector(load, spec, name, headers)
    return load


def _joined(error: RigError) -> str:
    return f"{error.what} ({error.why})" if error.why else error.what


def _without_header(load: Load, spec: HostSpec, name: str, card: str | None) -> None:
    """Nothing but the file's size is known: a lower bound."""
    service = spec.services[name]
    model = spec.models[service.model]
    sizes = [file.size for file in (model, *model.shards)]
    known = sum(size for size in sizes if isinstance(size, int))
    if known:
        load.put(card, "weights", known / MIB)
    if card is not None:
        load.put(card, "process", CUDA_RESIDUE_MIB)
    load.ram_detail = {
        "base": host_base_mib("cpu" if card is None else "cuda", 0),
        "prompt-cache": float(service.cache_ram_mib),
    }
    load.put(None, "process", sum(load.ram_detail.values()))
    load.findings.append(
        Finding(
            "header-unknown",
            "warning",
            f"the header of model {service.model} is not at hand: KV cache, state and compute buffers of service "
            f"{name} are not in this plan",
            f"run `llamarig lock {spec.host}`, which stores the header under headers/",
            name,
        )
    )


def _with_header(load: Load, spec: HostSpec, name: str, headers: Headers, header: Header) -> None:
    service = spec.services[name]
    card = placed_on(spec, service)
    drafter_name = service.speculation.model if service.speculation else None
    drafter = headers.get(drafter_name) if drafter_name else None
    if drafter_name and drafter is None:
        load.findings.append(
            Finding(
                "header-unknown",
                "warning",
                f"the header of the drafter {drafter_name} is not at hand: its memory is not in this plan",
                f"run `llamarig lock {spec.host}`, which stores the header under headers/",
                name,
            )
        )
    found = estimate(header, settings_of(spec, service), Beside(drafter=drafter))
    load.estimate = found
    draft_card = service.speculation.gpu if service.speculation and drafter is not None else None
    for term, mib in found.device.items():
        apart = draft_card is not None and term.startswith("draft-")
        load.put(draft_card if apart else card, term, mib)
    for term, mib in found.host.items():
        load.put(None, term, mib)
    load.ram_detail = dict(found.host_detail)


def _projector(load: Load, spec: HostSpec, name: str, headers: Headers) -> None:
    service = spec.services[name]
    projector = spec.models[service.model].projector
    if projector is None:
        return
    size = file_mib(projector, headers.get(f"{service.model}/projector"))
    if size is None:
        load.findings.append(
            Finding(
                "projector-size-unknown",
                "warning",
                f"the projector of model {service.model} has no size: its memory is not in this plan",
                f"run `llamarig lock {spec.host}`",
                name,
            )
        )
        return
    card = placed_on(spec, service)
    load.put(service.projector_gpu or card if card else None, "projector", projector_mib(int(size * MIB)))
