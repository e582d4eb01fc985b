"""Memory over one setting: the same host, planned again for each value of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from llamarig.memory.settings import SNAPSHOT_TYPES
from llamarig.plan.host import plan_host
from llamarig.plan.load import Headers, Load, load_of
from llamarig.plan.short import memory_fits
from llamarig.plan.types import DevicePlan, Plan, RamPlan
from llamarig.spec.host import HostSpec
from llamarig.spec.service import Service, Speculation

Setting = Literal["context", "n-max"]

SHORTEST_CONTEXT = 4096
"""Tokens at which a curve over the window begins."""

LONGEST_DRAFT = 16
"""Drafted tokens at which a curve over n-max ends by default, unless the spec drafts more."""

_STEP = 256
"""Tokens: the engine rounds the window up to a multiple of this."""


@dataclass(frozen=True, slots=True)
class Point:
    """The host as planned with one value of the setting."""

    value: int
    fits: bool
    """Whether the memory fits; other errors do not depend on the setting."""
    devices: tuple[DevicePlan, ...]
    ram: RamPlan


@dataclass(frozen=True, slots=True)
class Curve:
    """The points of one service and setting, by growing value; the present one is among them."""

    service: str
    setting: Setting
    present: int
    """The value in the spec; for ``n-max`` 0 stands for no speculation."""
    points: tuple[Point, ...]

    @property
    def here(self) -> Point:
        """The point of the spec as it is."""
        return next(point for point in self.points if point.value == self.present)


def curves(
    spec: HostSpec,
    headers: Headers,
    *,
    planner: Callable[..., Plan] = plan_host,
    steps: int = 16,
    drafts: int = LONGEST_DRAFT,
) -> tuple[Curve, ...]:
    """For each service whose header is at hand: memory over the window and, where drafts keep snapshots, over n-max.

    A model whose MTP head nobody uses shows what drafting with it would take. ``steps`` is how many parts the
    range of a window is cut into, ``drafts`` the longest draft of a curve over n-max, unless the spec drafts more;
    ``planner`` is :func:`plan_host`, or that with more of its arguments given.
    """
    loads = {name: load_of(spec, name, headers) for name in spec.services}
    found = []
    for name, service in spec.services.items():
        load = loads[name]
        if load.estimate is None:
            continue
        others = {other: each for other, each in loads.items() if other != name}

        def planned(value: int, changed: HostSpec, others: Mapping[str, Load] = others) -> Point:
            plan = planner(changed, headers, with_alternatives=False, loads=others)
            return _point(value, plan)

        longest = load.estimate.trained_context * (1 if service.kv_unified else service.parallel)
        values = context_values(service.context, longest, steps)
        points = tuple(planned(value, with_context(spec, name, value)) for value in values)
        found.append(Curve(name, "context", service.context, points))
        if drafted(service) or (load.estimate.mtp and service.speculation is None):
            points = tuple(planned(value, with_n_max(spec, name, value)) for value in n_max_values(service, drafts))
            found.append(Curve(name, "n-max", drafted(service), points))
    return tuple(found)


def _point(value: int, plan: Plan) -> Point:
    return Point(value, memory_fits(plan), plan.devices, plan.ram)


def context_values(present: int, trained: int, steps: int = 16) -> list[int]:
    """Windows in tokens, about equally far apart: from 4K to what the model was trained for, the present one too."""
    longest = max(trained, present)
    first = min(SHORTEST_CONTEXT, longest, present)
    spread = (first + (longest - first) * number // steps for number in range(1, steps))
    return sorted({first, longest, present, *(-(-value // _STEP) * _STEP for value in spread)})


def drafted(service: Service) -> int:
    """The longest draft of a kind that keeps state snapshots; 0 for any other and for none."""
    speculation = service.speculation
    return speculation.n_max if speculation is not None and speculation.type in SNAPSHOT_TYPES else 0


def n_max_values(service: Service, longest: int = LONGEST_DRAFT) -> Iterator[int]:
    """0, which is no speculation, and every length of a draft up to ``longest`` or to the spec's own."""
    yield from range(max(longest, drafted(service)) + 1)


def with_context(spec: HostSpec, name: str, tokens: int) -> HostSpec:
    """The spec with another window of the service ``name``."""
    return _changed(spec, name, spec.services[name].model_copy(update={"context": tokens}))


def with_n_max(spec: HostSpec, name: str, n_max: int) -> HostSpec:
    """The spec with another longest draft of the service ``name``; 0 takes speculation away.

    Where nothing drafts yet, the model's own MTP head does.
    """
    service = spec.services[name]
    speculation = None
    if n_max and service.speculation is not None:
        speculation = service.speculation.model_copy(update={"n_max": n_max})
    elif n_max:
        speculation = Speculation.model_validate({"type": "draft-mtp", "n-max": n_max})
    return _changed(spec, name, service.model_copy(update={"speculation": speculation}))


def _changed(spec: HostSpec, name: str, service: Service) -> HostSpec:
    return spec.model_copy(update={"services": spec.services | {name: service}})
