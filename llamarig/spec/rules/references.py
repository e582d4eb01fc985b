"""Names must name something: models, cards, drafters, and nothing twice."""

from __future__ import annotations

from collections.abc import Iterator

from llamarig.spec.rules.base import Broken, View, near
from llamarig.spec.service import Service
from llamarig.spec.tree import Loc

_MAX_SERVICE = 26
"""The user is called llama-<service>, and Linux ends user names at 32 characters."""


def names_exist(view: View) -> Iterator[Broken]:
    """A service names a model and cards that the host has."""
    for name, service in view.spec.services.items():
        at: Loc = ("services", name)
        yield from _known(view, "models", service.model, (*at, "model"), "model")
        for key in ("gpu", "projector_gpu"):
            card = getattr(service, key)
            if card is not None:
                yield from _known(view, "gpus", card, (*at, key.replace("_", "-")), "card")
        for index, card in enumerate(service.gpus):
            yield from _known(view, "gpus", card, (*at, "gpus", index), "card")
        yield from _drafter(view, service, at)
        for index, adapter in enumerate(service.lora):
            yield from _known(view, "models", adapter.model, (*at, "lora", index, "model"), "model")
        for index, model in enumerate(service.router.models if service.router is not None else ()):
            yield from _known(view, "models", model, (*at, "router", "models", index), "model")


def _drafter(view: View, service: Service, at: Loc) -> Iterator[Broken]:
    if service.speculation is None:
        return
    if service.speculation.model is not None:
        yield from _known(view, "models", service.speculation.model, (*at, "speculation", "model"), "model")
    if service.speculation.gpu is not None:
        yield from _known(view, "gpus", service.speculation.gpu, (*at, "speculation", "gpu"), "card")


def _known(view: View, section: str, name: str, loc: Loc, what: str) -> Iterator[Broken]:
    known = view.names(section)
    if name not in known:
        yield Broken(loc, f"no {what} is named `{name}` under `{section}`", near(name, known))


def unused(view: View) -> Iterator[Broken]:
    """A model that no service names is downloaded for nothing."""
    used: set[str] = set()
    for service in view.spec.services.values():
        used |= service.models_read
    for name in view.spec.models:
        if name not in used and not view.tainted:
            yield Broken(("models", name), f"no service uses the model `{name}`", "remove it, or use it", warning=True)


def service_names(view: View) -> Iterator[Broken]:
    """A service's name fits into a unit's and a user's name."""
    for name in view.spec.services:
        if len(name) > _MAX_SERVICE:
            yield Broken(
                ("services", name),
                f"the service name `{name}` has {len(name)} characters, at most {_MAX_SERVICE} fit into a user name",
                "shorten it",
            )
        elif name.endswith("-"):
            yield Broken(("services", name), f"the service name `{name}` ends with a dash", "remove the dash")


RULES = (names_exist, unused, service_names)
