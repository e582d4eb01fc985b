"""What runs where: backend against cards, projectors, margins, displays."""

from __future__ import annotations

from collections.abc import Iterator

from llamarig.spec.hardware import full_bus_id
from llamarig.spec.rules.base import Broken, View
from llamarig.spec.service import Service
from llamarig.spec.tree import Loc

_MARGIN_FLOOR = 512
"""MiB; servers with less free memory died after hours (allocation pools and graphs grow)."""
_DISPLAY_FLOOR = 512


def backend(view: View) -> Iterator[Broken]:
    """A CUDA service has a card, a CPU service has none."""
    cuda = view.spec.engine.backend == "cuda"
    on: tuple[Loc, ...] = (("engine", "backend"),)
    for name, service in view.spec.services.items():
        at: Loc = ("services", name)
        if cuda and service.gpu is None and not service.gpus:
            yield Broken(
                (*at, "gpu"),
                f"`{name}` names no card, though the backend is cuda",
                f"add `gpu: {next(iter(view.names('gpus')), 'NAME')}`",
                rests_on=(*on, (*at, "gpus")),
            )
        if not cuda:
            yield from _cpu(service, at, on)


def _cpu(service: Service, at: Loc, on: tuple[Loc, ...]) -> Iterator[Broken]:
    draft = service.speculation.gpu if service.speculation is not None else None
    used: list[tuple[Loc, bool]] = [
        ((*at, "gpu"), service.gpu is not None),
        ((*at, "gpus"), bool(service.gpus)),
        ((*at, "projector-gpu"), service.projector_gpu is not None),
        ((*at, "speculation", "gpu"), draft is not None),
    ]
    for loc, given in used:
        if given:
            yield Broken(
                loc,
                "the backend is cpu, so no card is used",
                f"remove `{loc[-1]}`, or set `backend: cuda` with architectures",
                rests_on=on,
            )


def cards(view: View) -> Iterator[Broken]:
    """A card is found by its bus id or UUID, and each is described once."""
    seen: dict[str, str] = {}
    for name, card in view.spec.gpus.items():
        at: Loc = ("gpus", name)
        if card.bus_id is None and card.uuid is None:
            yield Broken(
                at,
                f"nothing says which card `{name}` is",
                'add `bus-id: "01:00.0"` (lspci prints it) or `uuid` (nvidia-smi -L prints it)',
                rests_on=((*at, "bus-id"), (*at, "uuid")),
            )
        bus_id = full_bus_id(card.bus_id) if card.bus_id is not None else None
        for key, value in (("bus-id", bus_id), ("uuid", card.uuid)):
            if value is None:
                continue
            other = seen.setdefault(value, name)
            if other != name:
                yield Broken(
                    (*at, key),
                    f"the cards `{other}` and `{name}` have the same {key}",
                    "describe each card once",
                    rests_on=(("gpus", other, key),),
                )


def projector(view: View) -> Iterator[Broken]:
    """What is about images needs a projector, and a smallest image is no bigger than a biggest."""
    for name, service in view.spec.services.items():
        least, most = service.image_min_tokens, service.image_max_tokens
        if least is not None and most is not None and least > most:
            yield Broken(
                ("services", name, "image-max-tokens"),
                f"an image takes at most {most} tokens, and at least {least}",
                "raise image-max-tokens, or lower image-min-tokens",
            )
        at: Loc = ("services", name)
        if service.projector_on_cpu and service.projector_gpu is not None:
            yield Broken(
                (*at, "projector-on-cpu"),
                f"the projector is put on the card `{service.projector_gpu}` and on the CPU",
                "keep one of `projector-gpu` and `projector-on-cpu`",
                rests_on=((*at, "projector-gpu"),),
            )
        model = view.spec.models.get(service.model)
        if model is None or model.projector is not None:
            continue
        on: tuple[Loc, ...] = ((*at, "model"), ("models", service.model))
        fix = f"add `projector` to models.{service.model}, or remove this"
        for key, given in (
            ("projector-gpu", service.projector_gpu is not None),
            ("projector-on-cpu", service.projector_on_cpu),
            ("image-min-tokens", service.image_min_tokens is not None),
            ("image-max-tokens", service.image_max_tokens is not None),
        ):
            if given:
                yield Broken((*at, key), f"the model `{service.model}` has no projector", fix, rests_on=on)
        if set(service.expect.modalities) - {"text"}:
            loc: Loc = (*at, "expect", "modalities")
            yield Broken(loc, f"the model `{service.model}` has no projector: it serves text", fix, rests_on=on)


def margins(view: View) -> Iterator[Broken]:
    """Memory that stays free, and what a display takes of a card."""
    for name, service in view.spec.services.items():
        at: Loc = ("services", name)
        if view.spec.engine.backend != "cuda" or service.accept_margin is not None:
            continue
        if service.margin_mib < _MARGIN_FLOOR:
            yield Broken(
                (*at, "margin-mib"),
                f"a margin of {service.margin_mib} MiB is below {_MARGIN_FLOOR}: memory grows while serving, "
                "and servers died after hours with less",
                f"set {_MARGIN_FLOOR} or more, or add `accept-margin: {{reason: …}}`",
                rests_on=((*at, "accept-margin"), ("engine", "backend")),
            )
        yield from _displays(view, name, service)


def _displays(view: View, name: str, service: Service) -> Iterator[Broken]:
    at: Loc = ("services", name)
    used = [("gpu", service.gpu)] if service.gpu is not None else [("gpus", card) for card in service.gpus]
    for key, own in used:
        card = view.spec.gpus.get(str(own))
        if card is not None and card.display and card.reserve_mib is not None and card.reserve_mib < _DISPLAY_FLOOR:
            yield Broken(
                ("gpus", str(own), "reserve-mib"),
                f"a display hangs on `{own}`, and {card.reserve_mib} MiB are too little for a desktop",
                f"set {_DISPLAY_FLOOR} or more (compositors take 300 to 1,500), or `accept-margin` on `{name}`",
                rests_on=((*at, key), ("gpus", str(own), "display"), (*at, "accept-margin")),
            )


def ram(view: View) -> Iterator[Broken]:
    """The reserve is a part of the RAM."""
    memory = view.spec.memory
    if memory is not None and memory.reserve_mib >= memory.total_mib:
        yield Broken(
            ("memory", "reserve-mib"),
            f"the reserve of {memory.reserve_mib} MiB leaves nothing of {memory.total_mib}",
            "lower the reserve; `free -m` shows the total",
            rests_on=(("memory", "total-mib"),),
        )


RULES = (backend, cards, projector, margins, ram)
