"""What a host needs and how its services are started, decided before anything is touched."""

from __future__ import annotations

from llamarig.plan.as_json import plan_json
from llamarig.plan.headers import gather_headers, plan_project
from llamarig.plan.host import plan_host
from llamarig.plan.many import plan_each, plan_projects
from llamarig.plan.types import DevicePlan, Finding, Plan, RamPlan, ServicePlan

__all__ = [
    "DevicePlan",
    "Finding",
    "Plan",
    "RamPlan",
    "ServicePlan",
    "gather_headers",
    "plan_each",
    "plan_host",
    "plan_json",
    "plan_project",
    "plan_projects",
]
