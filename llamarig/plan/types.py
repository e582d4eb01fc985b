"""What planning yields: memory per device, service and term, arguments, findings.

Sizes are MiB (2^20 bytes) as floats; the JSON form rounds them to two decimals.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

from llamarig.plan.router import Preset
from llamarig.speed import Limits, Speed

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that the user should know: a code, what it is, and what to do about it."""

    code: str
    severity: Severity
    message: str
    fix: str = ""
    subject: str = ""

    def to_json(self) -> dict[str, str]:
        """The documented form (DESIGN, Commands)."""
        return {"code": self.code, "severity": self.severity, "message": self.message, "fix": self.fix}


def _per_term(services: dict[str, dict[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for terms in services.values():
        for term, mib in terms.items():
            total[term] = total.get(term, 0.0) + mib
    return total


@dataclass(frozen=True, slots=True)
class DevicePlan:
    """One card: what it has, what the services take, what is left.

    ``free_mib`` = usable - used; the plan fits when ``free_mib`` >= 0 and >= the margin of each service that does not
    accept a smaller one with a reason. ``margin_mib`` is the largest margin of all.
    """

    gpu: str
    uuid: str | None
    total_mib: float
    usable_mib: float
    margin_mib: float
    services: dict[str, dict[str, float]]
    doubt_mib: float = 0.0
    """What the services may take less than planned, because a model's header was composed."""

    @property
    def components(self) -> dict[str, float]:
        """MiB per term over all services."""
        return _per_term(self.services)

    @property
    def used_mib(self) -> float:
        """MiB over all services and terms."""
        return sum(self.components.values())

    @property
    def free_mib(self) -> float:
        """MiB of what is usable that no service takes."""
        return self.usable_mib - self.used_mib


@dataclass(frozen=True, slots=True)
class RamPlan:
    """The host's RAM as a second budget. ``total_mib`` is 0 when the spec does not say."""

    total_mib: float
    reserve_mib: float
    services: dict[str, dict[str, float]]

    @property
    def components(self) -> dict[str, float]:
        """MiB per term over all services."""
        return _per_term(self.services)

    @property
    def used_mib(self) -> float:
        """MiB over all services and terms."""
        return sum(self.components.values())


@dataclass(frozen=True, slots=True)
class ServicePlan:
    """How one server is started, and what a proof may expect of it.

    ``argv[0]`` is the binary under ``/opt/llamarig/current``; ``argv`` is exactly
    what ``/proc/PID/cmdline`` of the running process must show.
    """

    name: str
    argv: tuple[str, ...]
    environment: dict[str, str]
    memory_max_mib: int
    start_timeout_s: int
    slots: int
    context: int
    """Tokens in the window as the server reports them per slot."""
    model_path: str
    modalities: tuple[str, ...] = ("text",)
    speculative: bool = False
    files: tuple[str, ...] = ()
    """Adapters, and the models of a router, that the server reads besides."""
    presets: tuple[Preset, ...] = ()
    """What the file behind ``--models-preset`` lists."""


@dataclass(frozen=True, slots=True)
class ServiceSpeed:
    """Of one slot that is served alone."""

    expected: Speed | None
    """None on several cards, and when part of the model is read from RAM."""
    limits: Limits


UNKNOWN_SIZES = frozenset({"header-unknown", "header-undecided", "projector-size-unknown"})
"""Findings after which a plan does not say whether the host fits."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that was decided about a host before anything is touched."""

    host: str
    fits: bool
    devices: tuple[DevicePlan, ...]
    ram: RamPlan
    services: dict[str, ServicePlan]
    findings: tuple[Finding, ...] = ()
    alternatives: tuple[dict[str, Any], ...] = field(default=())
    """What would fit instead, in order of harm; each was planned."""
    ram_detail: dict[str, dict[str, float]] = field(default_factory=dict)
    """What each service's ``process`` term in RAM is made of: ``base``, ``checkpoints``, ``prompt-cache``."""
    speeds: dict[str, ServiceSpeed | None] = field(default_factory=dict)
    """How fast each service is expected to be; None where nothing can be said."""
    speeds_unknown: dict[str, str] = field(default_factory=dict)
    """Why no speed is predicted, by service."""

    @property
    def known(self) -> bool:
        """Whether it says if the host fits; else ``fits`` says only that nothing is known to fail."""
        return not any(finding.code in UNKNOWN_SIZES for finding in self.findings)

    def with_alternatives(self, alternatives: tuple[dict[str, Any], ...]) -> Plan:
        """The same plan, with what would fit instead."""
        return replace(self, alternatives=alternatives)
