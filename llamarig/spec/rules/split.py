"""A model on several cards, and parts of one in RAM."""

from __future__ import annotations

from collections.abc import Iterator

from llamarig.spec.rules import patterns
from llamarig.spec.rules.base import Broken, View, near
from llamarig.spec.service import Service
from llamarig.spec.tree import Loc

_FEW = 2


def several(view: View) -> Iterator[Broken]:
    """Several cards go with a way to split the model over them."""
    for name, service in view.spec.services.items():
        at: Loc = ("services", name)
        for index, card in enumerate(service.gpus):
            if card in service.gpus[:index]:
                yield Broken((*at, "gpus", index), f"`{card}` is named twice", "name each card once")
        yield from _mode(service, at)
        given = len(service.tensor_split)
        if given and given != len(service.gpus):
            yield Broken(
                (*at, "tensor-split"),
                f"{given} shares for {len(service.gpus)} cards in `gpus`",
                "give each card of `gpus` its share, or remove `tensor-split`",
                rests_on=((*at, "gpus"), (*at, "tensor-split")),
            )


def _mode(service: Service, at: Loc) -> Iterator[Broken]:
    if len(service.gpus) >= _FEW and service.split_mode == "none":
        yield Broken(
            (*at, "gpus"),
            f"{len(service.gpus)} cards, and nothing says how the model is split over them",
            "add `split-mode: layer` (whole layers on each card), or name one card as `gpu`",
            rests_on=((*at, "split-mode"),),
        )
    elif len(service.gpus) < _FEW and service.split_mode != "none":
        yield Broken(
            (*at, "split-mode"),
            f"`{service.split_mode}` splits a model over several cards, and `gpus` names {len(service.gpus) or 'none'}",
            "name the cards: `gpus: [first, second]`, or remove `split-mode`",
            rests_on=((*at, "gpus"),),
        )
    if service.split_mode == "tensor" and service.flash_attention == "off":
        yield Broken(
            (*at, "split-mode"),
            "`tensor` needs flash attention, which is off",
            "set `flash-attention: on`, or `split-mode: layer`",
            rests_on=((*at, "flash-attention"),),
        )


def in_ram(view: View) -> Iterator[Broken]:
    """Without cards everything is in RAM, so nothing is placed there by name."""
    if view.spec.engine.backend == "cuda":
        return
    for name, service in view.spec.services.items():
        for key, given in (
            ("experts-on-cpu", service.experts_on_cpu != 0),
            ("tensor-overrides", bool(service.tensor_overrides)),
        ):
            if given:
                yield Broken(
                    ("services", name, key),
                    "the backend is cpu, so everything is in RAM",
                    f"remove `{key}`",
                    rests_on=(("engine", "backend"),),
                )


def overrides(view: View) -> Iterator[Broken]:
    """`pattern=place`: a regular expression that the engine reads as we do, and CPU or a card of the service."""
    for name, service in view.spec.services.items():
        cards = [service.gpu] if service.gpu is not None else list(service.gpus)
        for index, entry in enumerate(service.tensor_overrides):
            at: Loc = ("services", name, "tensor-overrides", index)
            pattern, _, place = entry.partition("=")
            trouble = _pattern(entry, pattern, place)
            if trouble is not None:
                yield Broken(at, f"`{entry}`: {trouble}", 'write a pattern and a place, such as "ffn_.*_exps=CPU"')
            elif place != "CPU" and place not in cards:
                yield Broken(
                    at,
                    f"`{place}` is neither CPU nor a card of `{name}`",
                    near(place, ["CPU", *cards]),
                    rests_on=(("services", name, "gpu"), ("services", name, "gpus")),
                )
            elif place != "CPU" and service.split_mode == "tensor":
                yield Broken(
                    at,
                    "in tensor split the cards are one device, so that no tensor goes to one of them",
                    "place it on CPU, or set `split-mode: layer`",
                    rests_on=(("services", name, "split-mode"),),
                )


def _pattern(entry: str, pattern: str, place: str) -> str | None:
    """What is wrong with an entry by itself."""
    if not pattern or not place:
        return "it has no pattern or no place"
    if "," in entry or "=" in place:
        return "the engine ends a pattern at `,` and at the first `=`"
    return patterns.trouble(pattern)


RULES = (several, in_ram, overrides)
