"""How much a host is short of, place by place."""

from __future__ import annotations

from collections.abc import Mapping

from llamarig.plan.types import Finding, Plan
from llamarig.spec.host import HostSpec

Place = tuple[str, str]
"""``("gpu", NAME)`` or ``("ram", "")``."""

MEMORY_CODES = frozenset({"does-not-fit", "ram-does-not-fit"})
"""Errors that less memory cures."""

UNPLANNED_CODES = frozenset({"settings-refused", "gpu-unknown", "no-gpu", "unknown-architecture"})
"""Errors beside which nobody can say what a service takes, or what there is."""


def memory_fits(plan: Plan) -> bool:
    """Whether the memory fits, whatever else is wrong, such as a claim that cannot be."""
    unfit = MEMORY_CODES | UNPLANNED_CODES
    return not any(
        finding.code == "header-undecided" or (finding.severity == "error" and finding.code in unfit)
        for finding in plan.findings
    )


def key(finding: Finding) -> tuple[str, str]:
    """What stays the same in a finding when its figures change."""
    return finding.code, finding.subject


def others(plan: Plan) -> frozenset[tuple[str, str]]:
    """Errors that have nothing to do with memory."""
    unfit = MEMORY_CODES | UNPLANNED_CODES
    return frozenset(key(each) for each in plan.findings if each.severity == "error" and each.code not in unfit)


def asked_mib(spec: HostSpec, services: Mapping[str, object]) -> float:
    """The margin that a card's services insist on: that of a service which accepts a thinner one does not count."""
    insisting = (name for name in services if spec.services[name].accept_margin is None)
    return float(max((spec.services[name].margin_mib for name in insisting), default=0))


def shortage(spec: HostSpec, plan: Plan) -> dict[Place, float]:
    """MiB that each place is short of; negative is what could still be taken. RAM of unknown size is left out."""
    short = {
        ("gpu", device.gpu): asked_mib(spec, device.services) - device.free_mib
        for device in plan.devices
        if device.services
    }
    if plan.ram.total_mib:
        short["ram", ""] = plan.ram.used_mib + plan.ram.reserve_mib - plan.ram.total_mib
    return short


def used(plan: Plan) -> dict[Place, float]:
    """MiB that each place holds."""
    taken = {("gpu", device.gpu): device.used_mib for device in plan.devices}
    taken["ram", ""] = plan.ram.used_mib
    return taken
