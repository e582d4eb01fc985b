"""One change of a spec, and series of such changes from the least to the most harmful."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from llamarig.catalog.known_files import Table
from llamarig.gguf import Header
from llamarig.memory import Shape
from llamarig.plan.alternatives.search import Scale
from llamarig.plan.load import Headers
from llamarig.plan.types import Plan
from llamarig.spec.host import HostSpec
from llamarig.spec.service import Service

Replan = Callable[[HostSpec, Headers], Plan]
"""Plans a changed spec, without alternatives of its own."""

ServiceEdit = Callable[[Service], Service]


@dataclass(frozen=True)
class Subject:
    """What is to be made to fit."""

    spec: HostSpec
    headers: Headers
    plan: Plan
    shapes: Mapping[str, Shape]
    """By service, where the header is at hand."""
    known: Table

    def header(self, name: str) -> Header | None:
        """The header of a service's model."""
        return self.headers.get(self.spec.services[name].model)


@dataclass(frozen=True)
class Change:
    """A change: what it is in the spec's own keys, what it costs, and how it is made."""

    service: str
    shown: dict[str, Any]
    harm: str
    edit: ServiceEdit
    model: tuple[str, dict[str, Any], Header | None] | None = None
    """Another file for a model of the spec: its name, the keys that change, the header to plan with."""

    def apply(self, spec: HostSpec, headers: Headers) -> tuple[HostSpec, Headers]:
        """The spec and the headers with this change made."""
        services = spec.services | {self.service: self.edit(spec.services[self.service])}
        spec = spec.model_copy(update={"services": services})
        if self.model is not None:
            name, keys, header = self.model
            changed = spec.models[name].model_copy(update=keys)
            spec = spec.model_copy(update={"models": spec.models | {name: changed}})
            headers = {**headers, name: header}
        return spec, headers


@dataclass(frozen=True)
class Series:
    """Changes of one kind on one service, the least harmful first."""

    kind: str
    service: str
    count: int
    at: Callable[[int], Change]
    monotone: bool = True
    """Whether each step takes less memory than the one before."""
    scale: Scale = float
    """With what memory falls in a straight line; the number of the step, unless it is known better."""
    paired: int | None = None
    """The step at which it stands in a pair whose other half is searched; the last one when not given."""
    after: str = ""
    """The kind of which nothing may fit if this one is to be tried."""


def listed(kind: str, service: str, changes: list[Change], *, monotone: bool = True) -> Series:
    """A series of a few changes."""
    return Series(kind, service, len(changes), changes.__getitem__, monotone)


def unchanged(service: Service) -> Service:
    """For changes that leave the service as it is."""
    return service
