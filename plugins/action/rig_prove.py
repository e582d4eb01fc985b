# SPDX-License-Identifier: Apache-2.0
"""Prove the running services: look at the host and ask its servers, then judge on the controller."""

from __future__ import annotations

import json
from typing import Any

from ansible.plugins.action import ActionBase

from llamarig.compare import learn, probe_list
from llamarig.compare.load import wanted_from_json
from llamarig.errors import RigError
from llamarig.prove import Check, evaluate, probe_services


class ActionModule(ActionBase):
    """Arguments: ``wanted`` and, unless it follows from that, ``probe`` (docs/contracts.md). ``wanted`` may be text
    from a host, which is checked. ``before`` are the units as observed when the run began. ``memory`` asks what
    memory the services take, which is returned as ``measured`` and not judged. Fails when a check does; ``checks``
    and ``observed`` are returned either way."""

    _requires_connection = True
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        arguments = self._task.args
        try:
            wanted, probe = _documents(arguments)
        except (RigError, ValueError, RecursionError) as error:
            words = f"the wanted state is malformed: {error}"
            if isinstance(arguments["wanted"], str):
                # What a host kept and somebody broke is as good as absent, and must not keep a way back from ending.
                return {**result, "changed": False, "checks": [], "warnings": [f"nothing was proven: {words}"]}
            return {**result, "failed": True, "msg": words}
        seen = self._execute_module("rig_observe", module_args={"probe": probe}, task_vars=task_vars)
        if "observed" not in seen:
            return {**result, **seen, "failed": True}
        memory = bool(arguments.get("memory"))
        services = probe_services(wanted, memory=memory)
        asked = self._execute_module("rig_probe", module_args={"services": services}, task_vars=task_vars)
        if "probed" not in asked:
            return {**result, **asked, "failed": True}
        try:
            wanted = learn(wanted_from_json(wanted), seen["observed"]).to_json()
        except RigError as error:
            return {**result, "failed": True, "msg": str(error), "observed": seen["observed"]}
        before = arguments.get("before")
        checks = evaluate(wanted, seen["observed"], asked["probed"], before if isinstance(before, dict) else None)
        result.update(changed=False, checks=[check.to_json() for check in checks], observed=seen["observed"])
        if memory:
            result["measured"] = _measured(wanted, seen["observed"], asked["probed"])
        result["applied"] = [entry["path"] for entry in (*wanted["files"], *wanted["models"])]
        broken = [check for check in checks if not check.ok]
        if broken:
            result.update(failed=True, msg=_words(broken))
        return result


def _documents(arguments: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Wanted state and probe list. A state that a host kept is hostile text until it was read strictly."""
    wanted = arguments["wanted"]
    if isinstance(wanted, str):
        checked = wanted_from_json(json.loads(wanted))
        return checked.to_json(), probe_list(checked)
    return wanted, arguments.get("probe") or probe_list(wanted_from_json(wanted))


def _measured(wanted: dict[str, Any], observed: dict[str, Any], probed: dict[str, Any]) -> dict[str, Any]:
    """What was seen of each service's memory, as ``llamarig.prove.memory`` reads it."""
    names = [service["name"] for service in wanted["services"]]
    units = {service["name"]: service["unit"] for service in wanted["services"]}
    heard = probed.get("services", {})
    return {
        "services": {
            name: {part: heard.get(name, {}).get(part) for part in ("journal", "process", "fit")} for name in names
        },
        "pids": {name: observed.get("units", {}).get(units[name], {}).get("main-pid") for name in names},
        "vram": probed.get("vram"),
        "cards": {card["name"]: card["uuid"] for card in wanted["cards"]},
        "release": wanted["release"]["id"],
    }


def _words(broken: list[Check]) -> str:
    causes = [check for check in broken if check.blocked_by is None] or broken
    return "the proof failed: " + "; ".join(f"{check.name}: {check.detail}" for check in causes)
