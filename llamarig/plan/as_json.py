"""The documented JSON form of a plan: MiB with two decimals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llamarig.plan.speed import speed_json
from llamarig.plan.types import DevicePlan, Plan


def _rounded(terms: Mapping[str, float]) -> dict[str, float]:
    return {term: round(mib, 2) for term, mib in terms.items()}


def _device(device: DevicePlan) -> dict[str, Any]:
    return {
        "gpu": device.gpu,
        "uuid": device.uuid,
        "total-mib": round(device.total_mib, 2),
        "usable-mib": round(device.usable_mib, 2),
        "used-mib": round(device.used_mib, 2),
        "free-mib": round(device.free_mib, 2),
        "margin-mib": round(device.margin_mib, 2),
        "doubt-mib": round(device.doubt_mib, 2),
        "components": _rounded(device.components),
        "services": {name: _rounded(terms) for name, terms in device.services.items()},
    }


def plan_json(plan: Plan) -> dict[str, Any]:
    """What ``llamarig plan --json`` prints for one host."""
    return {
        "host": plan.host,
        "fits": plan.fits and plan.known,
        "known": plan.known,
        "devices": [_device(device) for device in plan.devices],
        "ram": {
            "total-mib": round(plan.ram.total_mib, 2),
            "used-mib": round(plan.ram.used_mib, 2),
            "components": _rounded(plan.ram.components),
            "reserve-mib": round(plan.ram.reserve_mib, 2),
            "services": {name: _rounded(terms) for name, terms in plan.ram.services.items()},
            "process": {name: _rounded(parts) for name, parts in plan.ram_detail.items()},
        },
        "services": {
            name: {
                "argv": list(service.argv),
                "environment": dict(service.environment),
                "slots": service.slots,
                "slot-context": service.context,
                "memory-max-mib": service.memory_max_mib,
                "speed": speed_json(plan.speeds.get(name)),
                "speed-unknown": plan.speeds_unknown.get(name),
            }
            for name, service in plan.services.items()
        },
        "findings": [finding.to_json() for finding in plan.findings],
        "alternatives": [dict(alternative) for alternative in plan.alternatives],
    }
