"""Composed specs and plans for rendering tests."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

from llamarig.plan.types import Plan
from llamarig.spec.host import HostSpec
from tests.golden.cases import plan_of, spec_of


def changed(host: str, *changes: tuple[str, Any]) -> HostSpec:
    """The golden host's spec with values at dotted keys replaced; ``None`` takes a key out."""
    data: dict[str, Any] = copy.deepcopy(spec_of(host).model_dump(by_alias=True, exclude_unset=True))
    for path, value in changes:
        *parents, last = path.split(".")
        node = data
        for parent in parents:
            node = node[parent]
        if value is None:
            del node[last]
        else:
            node[last] = value
    return HostSpec.model_validate(data)


def with_argv(plan: Plan, service: str, argv: tuple[str, ...]) -> Plan:
    """A plan whose service has other arguments."""
    return replace(plan, services=plan.services | {service: replace(plan.services[service], argv=argv)})


__all__ = ["changed", "plan_of", "spec_of", "with_argv"]
