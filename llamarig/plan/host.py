"""Plans one host: memory, arguments, environment and findings, before anything is touched."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from llamarig.plan.alternatives import alternatives
from llamarig.plan.findings import service_findings
from llamarig.plan.fit import device_plans, fit_findings, ram_plan
from llamarig.plan.load import Headers, Load, load_of
from llamarig.plan.measured import Measured, use_measured
from llamarig.plan.services import service_plan
from llamarig.plan.types import Finding, Plan
from llamarig.spec.host import HostSpec

_NONE: Mapping[str, str] = MappingProxyType({})
_NO_LOADS: Mapping[str, Load] = MappingProxyType({})


def plan_host(
    spec: HostSpec,
    headers: Headers,
    *,
    measured: Measured | None = None,
    with_alternatives: bool = True,
    loads: Mapping[str, Load] = _NO_LOADS,
) -> Plan:
    """Plan ``spec``; pure: the same input always gives the same plan.

    ``headers`` holds the model headers by model name, and ``<model>/projector`` for projectors; a missing one
    or None gives the finding ``header-unknown``. ``measured`` holds what the host's own
    processes were seen to take. A plan that does not fit has findings of severity ``error`` and says what would fit.
    ``loads`` holds what services take that was computed before, of this spec or of one that differs in other
    services alone.
    """
    loads = {name: loads[name] if name in loads else load_of(spec, name, headers) for name in spec.services}
    told = list(use_measured(loads, measured))
    devices = device_plans(spec, loads, _NONE)
    ram = ram_plan(spec, loads)
    findings = [*_findings(spec, loads), *fit_findings(spec, devices, ram), *told]
    fits = not any(finding.severity == "error" for finding in findings)
    plan = Plan(
        host=spec.host,
        fits=fits,
        devices=devices,
        ram=ram,
        services={
            name: service_plan(spec, name, loads[name], _NONE, headers.get(f"{service.model}/projector"))
            for name, service in spec.services.items()
        },
        findings=tuple(findings),
        ram_detail={name: load.ram_detail for name, load in loads.items()},
    )
    if fits or not with_alternatives:
        return plan

    def replan(changed: HostSpec) -> Plan:
        return plan_host(changed, headers, measured=measured, with_alternatives=False)

    trained = {name: load.estimate.trained_context for name, load in loads.items() if load.estimate is not None}
    return plan.with_alternatives(tuple(alternatives(spec, plan, replan, trained)))


def _findings(spec: HostSpec, loads: Mapping[str, Load]) -> list[Finding]:
    """Of every service, each message once."""
    found: dict[tuple[str, str], Finding] = {}
    for name, load in loads.items():
        for finding in service_findings(spec, name, load, _NONE):
            found.setdefault((finding.code, finding.message), finding)
    return list(found.values())
