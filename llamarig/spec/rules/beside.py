"""What a server loads besides one model: adapters, and the models of a router."""

from __future__ import annotations

from collections.abc import Iterator

from llamarig.spec.rules.base import Broken, View
from llamarig.spec.rules.files import file_name
from llamarig.spec.service import Router, Service
from llamarig.spec.tree import Loc

_DEFAULT = "default"
"""Section of a router's file whose keys are for all models; COMMON_PRESET_DEFAULT_NAME in common/preset.h."""


def _path(view: View, model: str) -> str:
    known = view.spec.models.get(model)
    return f"{view.spec.models_dir}/{model}/{file_name(known)}" if known is not None else ""


def adapters(view: View) -> Iterator[Broken]:
    """An adapter is another file than the model, named once, with a path that the engine's list can hold."""
    for name, service in view.spec.services.items():
        for index, adapter in enumerate(service.lora):
            at: Loc = ("services", name, "lora", index, "model")
            on: tuple[Loc, ...] = (("models", adapter.model),)
            if adapter.model == service.model:
                yield Broken(at, f"`{adapter.model}` is the model itself", "name the adapter's own file under `models`")
            elif any(adapter.model == other.model for other in service.lora[:index]):
                yield Broken(at, f"the adapter `{adapter.model}` is laid on twice", "lay it on once, with one scale")
            elif any(mark in _path(view, adapter.model) for mark in ',:"'):
                yield Broken(
                    at,
                    f"the path of `{adapter.model}` holds a comma, a colon or a quote, at which the engine cuts it",
                    "rename the file, or choose another `models-dir`",
                    rests_on=on,
                )


def routed(view: View) -> Iterator[Broken]:
    """A router chooses from named models, and nothing that belongs to one model is asked of all."""
    for name, service in view.spec.services.items():
        if service.router is not None:
            at: Loc = ("services", name, "router")
            yield from _router(view, service, service.router, at)
            yield from _of_one_model(service, ("services", name), at)
            if service.listen.address.endswith(".sock"):
                yield Broken(
                    ("services", name, "listen", "address"),
                    "a router reaches its models over TCP, and a service on a socket has no network",
                    "give an IP address and a port, such as `{address: 127.0.0.1, port: 8080}`",
                    rests_on=(at,),
                )


def _router(view: View, service: Service, router: Router, at: Loc) -> Iterator[Broken]:
    for index, model in enumerate(router.models):
        loc: Loc = (*at, "models", index)
        if model in router.models[:index]:
            yield Broken(loc, f"`{model}` is listed twice", "list each model once")
        elif model == _DEFAULT:
            yield Broken(loc, "the engine takes `default` for what all models share", "give the model another name")
        elif any(mark in _path(view, model) for mark in ";#"):
            yield Broken(
                loc,
                f"the path of `{model}` holds `;` or `#`, at which the engine ends it",
                "rename the file, or choose another `models-dir`",
                rests_on=(("models", model),),
            )
    if service.model not in router.models:
        yield Broken(
            (*at, "models"),
            f"the service's own model `{service.model}` is not among them",
            f"add `{service.model}`, the one that proofs and benchmarks ask for",
            rests_on=((*at[:-1], "model"),),
        )
    if router.models_max > len(router.models):
        yield Broken(
            (*at, "models-max"),
            f"{router.models_max} of {len(router.models)} models can never be loaded at once",
            f"set {len(router.models)} or less",
            rests_on=((*at, "models"),),
        )


def _of_one_model(service: Service, at: Loc, router: Loc) -> Iterator[Broken]:
    drafter = service.speculation is not None and service.speculation.model is not None
    for key, given in (("lora", bool(service.lora)), ("alias", service.alias is not None), ("speculation", drafter)):
        if given:
            yield Broken(
                (*at, key),
                f"`{key}` belongs to one model, and a router has several",
                f"remove `{key}`, or serve that model in a service of its own",
                rests_on=(router,),
            )


RULES = (adapters, routed)
