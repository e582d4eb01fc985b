"""What one service takes on which card, and in RAM."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from llamarig.errors import RigError
from llamarig.gguf import Header
from llamarig.gguf.tensor_types import BY_NAME
from llamarig.memory import Beside, Estimate, estimate, projector_mib
from llamarig.memory.placement.layers import copies
from llamarig.memory.process import SEVERAL_RESIDUES_MIB, host_base_mib, residues_mib
from llamarig.memory.projector import encoded_mib
from llamarig.memory.units import MIB
from llamarig.plan.devices import room_of
from llamarig.plan.settings import draft_card, model_cards, projector_card, settings_of, visible_cards
from llamarig.plan.types import Finding, ServiceSpeed
from llamarig.spec.host import HostSpec
from llamarig.spec.models import ModelFile
from llamarig.spec.service import Service

Headers = Mapping[str, Header | None]
"""By model name; ``<model>/projector`` for projectors."""


WIDEST_EMBEDDING = "Q8_0"
"""The widest type that mixes of up to eight bits give the embedding; source: ``llama_tensor_get_type`` in
src/llama-quant.cpp, and the published files, of which none goes beyond it."""


@dataclass(slots=True)
class Load:
    """MiB by card and term, and in RAM."""

    cards: dict[str, dict[str, float]] = field(default_factory=dict)
    ram: dict[str, float] = field(default_factory=dict)
    ram_detail: dict[str, float] = field(default_factory=dict)
    doubt: dict[str, float] = field(default_factory=dict)
    """MiB by card that may lie in RAM instead: the header was composed, and the embedding's type is assumed."""
    estimate: Estimate | None = None
    """None when the header is not at hand."""
    findings: list[Finding] = field(default_factory=list)
    speed: ServiceSpeed | None = None
    speed_known: bool = False
    """Whether ``speed`` was asked for yet."""

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
    if service.router is not None:
        return _router(spec, name, headers)
    return _server(spec, name, service, headers)


def _server(spec: HostSpec, name: str, service: Service, headers: Headers) -> Load:
    """One process with one model."""
    load = Load()
    header = headers.get(service.model)
    if header is None:
        _without_header(load, spec, name, service)
    else:
        try:
            _with_header(load, spec, name, service, headers)
        except RigError as error:
            load.findings.append(Finding("settings-refused", "error", _joined(error), error.fix, name))
    _projector(load, spec, name, service, headers)
    return load


def _router(spec: HostSpec, name: str, headers: Headers) -> Load:
    """A router, and as many of its models as it keeps loaded: on each place the biggest ones.

    Each model has a process of its own; the router itself holds a context on every card that it sees.
    Source: ``server_models`` in tools/server/server-models.cpp.
    """
    service = spec.services[name]
    router = service.router
    models = router.models if router is not None else [service.model]
    at_once = min(router.models_max if router is not None else 1, len(models))
    each = [_server(spec, name, service.model_copy(update={"model": model}), headers) for model in models]
    load = Load(estimate=_unknown_first([one.estimate for one in each]))
    for one in each:
        load.findings.extend(finding for finding in one.findings if finding not in load.findings)
    cards = visible_cards(spec, service)
    for card, residue in zip(cards, residues_mib(len(cards)) if cards else (), strict=True):
        load.put(card, "process", residue)
        for terms in _biggest([one.cards.get(card, {}) for one in each], at_once):
            for term, mib in terms.items():
                load.put(card, term, mib)
    base = host_base_mib("cuda" if cards else "cpu", 0)
    load.put(None, "process", base)
    load.ram_detail = {"base": base}
    for one in sorted(each, key=lambda load: -sum(load.ram.values()))[:at_once]:
        for term, mib in one.ram.items():
            load.put(None, term, mib)
        for part, mib in one.ram_detail.items():
            load.ram_detail[part] = load.ram_detail.get(part, 0.0) + mib
    return load


def _biggest(places: list[dict[str, float]], count: int) -> list[dict[str, float]]:
    return sorted(places, key=lambda terms: -sum(terms.values()))[:count]


def _unknown_first(estimates: list[Estimate | None]) -> Estimate | None:
    """None as soon as one model's header is missing; else one whose layout is not known, or any."""
    known = [found for found in estimates if found is not None]
    return None if len(known) < len(estimates) else min(known, key=lambda found: (found.known, found.compute_checked))


def _joined(error: RigError) -> str:
    return f"{error.what} ({error.why})" if error.why else error.what


def _unknown(what: str, spec: HostSpec, name: str) -> Finding:
    return Finding(
        "header-unknown",
        "warning",
        what,
        f"run `llamarig lock {spec.host}`, which stores the header under headers/",
        name,
    )


def _composed(spec: HostSpec, name: str, header: Header) -> Finding:
    if header.embedding_assumed:
        types = "and the types of single tensors are assumed, which moves some of them between card and RAM"
    else:
        types = "the token embedding has its published type, and those of most other tensors are assumed"
    return Finding(
        "header-composed",
        "warning",
        f"the header of model {spec.services[name].model} is not at hand and was composed from the dimensions of "
        f"{header.name} and the bytes of its file: the weights are right in their sum, {types}",
        f"run `llamarig lock {spec.host}`, which stores the exact header under headers/",
        name,
    )


def _doubt(load: Load, header: Header) -> None:
    """What the cards hold less where the embedding has wider blocks than assumed: the file's bytes stay the same."""
    embedding = header.by_name.get("token_embd.weight")
    weights = sum(terms.get("weights", 0.0) for terms in load.cards.values())
    if embedding is None or not weights:
        return
    widest = BY_NAME[WIDEST_EMBEDDING]
    most = math.prod(embedding.dims) // widest.block * widest.size
    doubt = max(most - embedding.size, 0) / MIB
    load.doubt = {card: doubt * terms.get("weights", 0.0) / weights for card, terms in load.cards.items()}


def _without_header(load: Load, spec: HostSpec, name: str, service: Service) -> None:
    """Nothing but the file's size is known: a lower bound, in proportion to the cards' shares."""
    model = spec.models[service.model]
    sizes = [file.size for file in (model, *model.shards)]
    known = sum(size for size in sizes if isinstance(size, int))
    cards = model_cards(spec, service)
    shares = settings_of(spec, service).shares
    for card, share, residue in zip(cards, shares, residues_mib(len(cards)) if cards else (), strict=False):
        if known:
            load.put(card, "weights", known / MIB * share / sum(shares))
        load.put(card, "process", residue)
    if known and not cards:
        load.put(None, "weights", known / MIB)
    load.ram_detail = {
        "base": host_base_mib("cuda" if cards else "cpu", 0),
        "prompt-cache": float(service.cache_ram_mib),
    }
    load.put(None, "process", sum(load.ram_detail.values()))
    load.findings.append(
        _unknown(
            f"the header of model {service.model} is not at hand: KV cache, state and compute buffers of service "
            f"{name} are not in this plan",
            spec,
            name,
        )
    )


def _with_header(load: Load, spec: HostSpec, name: str, service: Service, headers: Headers) -> None:
    header = headers[service.model]
    if header is None:
        return
    if header.composed:
        load.findings.append(_composed(spec, name, header))
    cards = visible_cards(spec, service)
    beside = _beside(load, spec, name, service, headers)
    settings = settings_of(spec, service)
    found = estimate(header, settings, beside)
    if found.shape is not None and copies(found.shape, settings) > 1 and _overfull(spec, cards, found):
        less = estimate(header, replace(settings, pipeline=False), beside)
        saved = found.device_mib - less.device_mib
        if saved > 0:
            load.findings.append(_pipeline_given_up(name, saved))
            found = less
    load.estimate = found
    for card, terms in zip(cards, found.devices, strict=False):
        for term, mib in terms.items():
            load.put(card, term, mib)
    for term, mib in found.host.items():
        load.put(None, term, mib)
    load.ram_detail = dict(found.host_detail)
    if header.embedding_assumed:
        _doubt(load, header)


def _beside(load: Load, spec: HostSpec, name: str, service: Service, headers: Headers) -> Beside:
    """Drafter and adapters, as far as their headers are at hand."""
    drafting = service.speculation
    drafter = headers.get(drafting.model) if drafting is not None and drafting.model is not None else None
    if drafting is not None and drafting.model is not None and drafter is None:
        what = f"the header of the drafter {drafting.model} is not at hand: its memory is not in this plan"
        load.findings.append(_unknown(what, spec, name))
    adapters = []
    for adapter in service.lora:
        header = headers.get(adapter.model)
        if header is None:
            what = f"the header of the adapter {adapter.model} is not at hand: its memory is not in this plan"
            load.findings.append(_unknown(what, spec, name))
        else:
            adapters.append(header)
    return Beside(drafter=drafter, draft_card=draft_card(spec, service), adapters=tuple(adapters))


def _overfull(spec: HostSpec, cards: tuple[str, ...], found: Estimate) -> bool:
    """Whether a card cannot hold what the service alone takes."""
    rooms = [room_of(spec.gpus[card]) for card in cards]
    return any(
        room is not None and sum(terms.values()) > room.usable_mib
        for room, terms in zip(rooms, found.devices, strict=False)
    )


def _pipeline_given_up(name: str, saved: float) -> Finding:
    return Finding(
        "pipeline-given-up",
        "warning",
        f"the buffers of a pipeline over the cards of service {name} do not fit; the server then starts without "
        f"one, which its log alone tells: {saved:,.0f} MiB less, and prompts are read more slowly",
        "lower context or ubatch, or leave it so",
        name,
    )


def _projector(load: Load, spec: HostSpec, name: str, service: Service, headers: Headers) -> None:
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
    card = projector_card(spec, service)
    header = headers.get(f"{service.model}/projector")
    encoded = encoded_mib(int(size * MIB), header, service.image_max_tokens, on_card=card is not None)
    if encoded is None:
        load.put(card, "projector", projector_mib(int(size * MIB)))
        return
    on_card, in_ram = encoded
    if card is not None:
        load.put(card, "projector", on_card)
        if "process" not in load.cards[card]:
            load.put(card, "process", SEVERAL_RESIDUES_MIB[1])
    load.put(None, "projector", in_ram)
