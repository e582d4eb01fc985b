"""The hosts whose rendered files are kept in this directory.

Arguments and environment come from the planner; memory and times are composed, so that
a better memory model changes no rendered file here.
"""

from __future__ import annotations

from pathlib import Path

import yaml

from llamarig.plan.argv import argv
from llamarig.plan.environment import environment
from llamarig.plan.places import model_path
from llamarig.plan.types import DevicePlan, Plan, RamPlan, ServicePlan
from llamarig.render import wanted_state
from llamarig.render.wanted import Wanted
from llamarig.spec.host import HostSpec

HERE = Path(__file__).resolve().parent
SPECS = {
    "demo": HERE.parent.parent / "inventory" / "demo.yml",
    "twin": HERE / "specs" / "twin.yml",
    "noble": HERE / "specs" / "noble.yml",
}


def spec_of(host: str) -> HostSpec:
    return HostSpec.model_validate(yaml.safe_load(SPECS[host].read_text(encoding="utf-8")))


def plan_of(spec: HostSpec) -> Plan:
    """A plan with composed sizes: 1,024 MiB of RAM and 120 s for every service, 2,000 MiB on its first card."""
    services = {
        name: ServicePlan(
            name=name,
            argv=argv(spec, name),
            environment=environment(spec, name),
            memory_max_mib=1024,
            start_timeout_s=120,
            slots=service.parallel,
            context=service.context // service.parallel,
            model_path=model_path(spec, service.model),
            speculative=service.speculation is not None,
        )
        for name, service in spec.services.items()
    }
    devices = tuple(
        DevicePlan(card, gpu.uuid, 24467.0, 23900.0, 512.0, _on(spec, card)) for card, gpu in spec.gpus.items()
    )
    return Plan(spec.host, True, devices, RamPlan(65536.0, 2048.0, {}), services)


def _on(spec: HostSpec, card: str) -> dict[str, dict[str, float]]:
    return {name: {"weights": 2000.0} for name, service in spec.services.items() if service.gpu == card}


def wanted_of(host: str) -> Wanted:
    spec = spec_of(host)
    return wanted_state(spec, plan_of(spec), HERE)
