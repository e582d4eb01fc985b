"""Plans one host: memory, arguments, environment and findings, before anything is touched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from llamarig.catalog.known_files import Table, table
from llamarig.memory import Shape
from llamarig.plan.alternatives import Replan, Subject, alternatives
from llamarig.plan.findings import service_findings
from llamarig.plan.fit import device_plans, fit_findings, ram_plan
from llamarig.plan.load import Headers, Load, load_of
from llamarig.plan.measured import Measured, use_measured
from llamarig.plan.process_share import process_findings
from llamarig.plan.services import service_plan
from llamarig.plan.short import UNPLANNED_CODES
from llamarig.plan.speed import speed_of, unknown_words
from llamarig.plan.speed_findings import speed_findings
from llamarig.plan.types import Finding, Plan, ServiceSpeed
from llamarig.spec.host import HostSpec

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
    plan, loads = _planned(spec, headers, measured, loads)
    if plan.fits or not with_alternatives:
        return plan
    return _offered(_subject(spec, headers, (plan, loads)), loads, measured)


def plan_known(spec: HostSpec, headers: Headers, known: Table, *, measured: Measured | None = None) -> Plan:
    """The same, with alternatives from ``known`` files instead of the catalog's."""
    plan, loads = _planned(spec, headers, measured)
    return plan if plan.fits else _offered(_subject(spec, headers, (plan, loads), known), loads, measured)


def planned_subject(
    spec: HostSpec, headers: Headers, *, known: Table | None = None, measured: Measured | None = None
) -> tuple[Subject, Replan]:
    """A planned spec on which changes can be tried, and what plans them."""
    plan, loads = _planned(spec, headers, measured)
    subject = _subject(spec, headers, (plan, loads), known)
    return subject, _replanner(subject, loads, measured)


def _subject(
    spec: HostSpec, headers: Headers, planned: tuple[Plan, Mapping[str, Load]], known: Table | None = None
) -> Subject:
    plan, loads = planned
    shapes = {name: found for name, load in loads.items() if (found := _shape(load)) is not None}
    return Subject(spec, headers, plan, shapes, table() if known is None else known)


def _offered(subject: Subject, loads: Mapping[str, Load], measured: Measured | None) -> Plan:
    found = tuple(alternatives(subject, _replanner(subject, loads, measured)))
    return (subject.plan if found else _without_advice(subject.plan)).with_alternatives(found)


_ADVICE = "no change of a setting that was tried makes it fit: use another card or a smaller model"
_FIRST = "correct the other errors first: what would fit is planned then"


def _without_advice(plan: Plan) -> Plan:
    """The same plan, where no finding speaks of alternatives that there are not."""
    unplanned = any(finding.code in UNPLANNED_CODES and finding.severity == "error" for finding in plan.findings)
    findings = tuple(
        replace(finding, fix=_FIRST if unplanned else _ADVICE) if finding.code == "does-not-fit" else finding
        for finding in plan.findings
    )
    return replace(plan, findings=findings)


def _replanner(subject: Subject, loads: Mapping[str, Load], measured: Measured | None) -> Replan:
    """Plans changed specs; what a change leaves alone is not computed again."""
    before = (subject.spec, subject.headers)

    def replan(changed: HostSpec, headers: Headers) -> Plan:
        same = {name: load for name, load in loads.items() if _same(name, before, (changed, headers))}
        return _planned(changed, headers, measured, same)[0]

    return replan


def _planned(
    spec: HostSpec, headers: Headers, measured: Measured | None, loads: Mapping[str, Load] = _NO_LOADS
) -> tuple[Plan, Mapping[str, Load]]:
    """The plan without alternatives, and what each service takes; ``loads`` are those that are known already."""
    loads = {name: loads[name] if name in loads else load_of(spec, name, headers) for name in spec.services}
    told = list(use_measured(loads, measured))
    devices = device_plans(spec, loads)
    ram = ram_plan(spec, loads)
    speeds = {name: _speed(spec, name, load, headers) for name, load in loads.items()}
    findings = [*_findings(spec, loads), *fit_findings(spec, devices, ram), *told]
    findings += [*process_findings(spec, devices, measured), *_speed_findings(spec, speeds, headers)]
    fits = not any(finding.severity == "error" for finding in findings)
    plan = Plan(
        host=spec.host,
        fits=fits,
        devices=devices,
        ram=ram,
        services={
            name: service_plan(spec, name, loads[name], headers.get(f"{service.model}/projector"))
            for name, service in spec.services.items()
        },
        findings=tuple(findings),
        ram_detail={name: load.ram_detail for name, load in loads.items()},
        speeds=speeds,
        speeds_unknown={
            name: why
            for name, speed in speeds.items()
            if (why := unknown_words(spec, name, speed, headers)) is not None
        },
    )
    return plan, loads


def _speed(spec: HostSpec, name: str, load: Load, headers: Headers) -> ServiceSpeed | None:
    """Kept with the load: a plan that changes other services alone need not ask again."""
    if not load.speed_known:
        load.speed, load.speed_known = speed_of(spec, name, load, headers), True
    return load.speed


def _speed_findings(spec: HostSpec, speeds: Mapping[str, ServiceSpeed | None], headers: Headers) -> list[Finding]:
    """Of every service, each message once."""
    found = [finding for name, speed in speeds.items() for finding in speed_findings(spec, name, speed, headers)]
    return list({(finding.code, finding.message): finding for finding in found}.values())


def _shape(load: Load) -> Shape | None:
    return None if load.estimate is None else load.estimate.shape


def _same(name: str, before: tuple[HostSpec, Headers], after: tuple[HostSpec, Headers]) -> bool:
    """Whether what the service ``name`` takes cannot have changed."""
    (old, old_headers), (new, new_headers) = before, after
    service = old.services[name]
    read = service.models_read
    same = new.services[name] is service and all(new.models.get(model) is old.models.get(model) for model in read)
    files = [key for model in read for key in (model, f"{model}/projector")]
    return same and all(new_headers.get(key) is old_headers.get(key) for key in files)


def _findings(spec: HostSpec, loads: Mapping[str, Load]) -> list[Finding]:
    """Of every service, each message once."""
    found: dict[tuple[str, str], Finding] = {}
    for name, load in loads.items():
        for finding in service_findings(spec, name, load):
            found.setdefault((finding.code, finding.message), finding)
    return list(found.values())
