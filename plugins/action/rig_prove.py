# SPDX-License-Identifier: Apache-2.0
"""Prove the running services: look at the host and ask its servers, then judge on the controller."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from llamarig.prove import Check, evaluate, probe_services


class ActionModule(ActionBase):
    """Arguments: ``wanted`` and ``probe`` (docs/contracts.md). Fails when a check does; ``checks`` and
    ``observed`` are returned either way."""

    _requires_connection = True
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        arguments = self._task.args
        wanted: dict[str, Any] = arguments["wanted"]
        seen = self._execute_module("rig_observe", module_args={"probe": arguments["probe"]}, task_vars=task_vars)
        if "observed" not in seen:
            return {**result, **seen, "failed": True}
        asked = self._execute_module(
            "rig_probe", module_args={"services": probe_services(wanted)}, task_vars=task_vars
        )
        if "probed" not in asked:
            return {**result, **asked, "failed": True}
        checks = evaluate(wanted, seen["observed"], asked["probed"])
        result.update(changed=False, checks=[check.to_json() for check in checks], observed=seen["observed"])
        broken = [check for check in checks if not check.ok]
        if broken:
            result.update(failed=True, msg=_words(broken))
        return result


def _words(broken: list[Check]) -> str:
    causes = [check for check in broken if check.blocked_by is None] or broken
    return "the proof failed: " + "; ".join(f"{check.name}: {check.detail}" for check in causes)
