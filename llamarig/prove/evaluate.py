"""The proof of a host: every check of every service, from three documents and nothing else."""

from __future__ import annotations

from typing import Any

from llamarig.prove import api, gpu, host, model, process
from llamarig.prove.check import Check, run_rules
from llamarig.prove.hostile import mapping
from llamarig.prove.services import View

SERVICE_RULES = (*process.RULES, *model.RULES, *api.RULES, *gpu.RULES)
"""Every check of a service, in the order in which they are made."""


def evaluate(
    wanted: dict[str, Any], observed: dict[str, Any], probed: dict[str, Any], before: dict[str, Any] | None = None
) -> list[Check]:
    """Judge a host.

    ``wanted`` is ``Wanted.to_json()``, ``observed`` the state that rig_observe saw, ``probed`` what rig_probe heard,
    ``before`` the units as observed when the run began that is proven. All but the first are hostile: whatever they
    hold, the answer is a list of checks and never an exception.
    """
    vram = mapping(probed, "vram")
    checks = run_rules("host", View({}, wanted, observed, {}, vram), host.RULES)
    for service in wanted["services"]:
        heard = mapping(probed, "services", service["name"])
        checks += run_rules(service["name"], View(service, wanted, observed, heard, vram, before), SERVICE_RULES)
    return checks
