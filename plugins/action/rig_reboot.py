# SPDX-License-Identifier: Apache-2.0
"""Decide on the controller whether a host reboots and what it boots in a rollback, or judge what came up."""

from __future__ import annotations

import time
from typing import Any

from ansible.plugins.action import ActionBase

from llamarig.compare.kernel_back import alone, with_former
from llamarig.compare.load import wanted_from_json
from llamarig.compare.reboot import IDLE_MINUTES, Policy, decide_reboot, differs_after
from llamarig.compare.view import view_of
from llamarig.errors import RigError
from llamarig.prove import probe_services


class ActionModule(ActionBase):
    """Arguments: ``wanted``, ``observed``, and ``policy`` (``reboot``, ``idle_minutes``, ``local``, ``window``,
    ``timezone``). ``allowed``: somebody has said yes. With ``booted``, a kernel, it does not decide but returns what
    ``differs`` after the boot. With ``back`` (``former`` state, or ``kernel`` alone) it returns under that key which
    kernel a rollback chooses.
    """

    _requires_connection = True
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        arguments = self._task.args
        try:
            view = view_of(wanted_from_json(arguments["wanted"]), arguments["observed"])
            if arguments.get("booted"):
                return {**result, "changed": False, "differs": differs_after(view, str(arguments["booted"]))}
            if arguments.get("back"):
                chosen = alone(view) if arguments["back"] == "kernel" else with_former(view)
                return {**result, "changed": False, "back": None if chosen is None else chosen.to_json()}
            policy = Policy.of(arguments.get("policy", {}))
            if decide_reboot(view, policy).verdict not in ("ask", "waits"):
                return {**result, "changed": False, "reboot": decide_reboot(view, policy).to_json()}
            minutes = policy.idle_minutes if policy.idle_minutes is not None else IDLE_MINUTES
            asked = {"services": probe_services(arguments["wanted"]), "minutes": minutes}
            seen = self._execute_module("rig_idle", module_args=asked, task_vars=task_vars)
            if "idle" not in seen:
                return {**result, **seen, "failed": True}
            allowed = bool(arguments.get("allowed"))
            decided = decide_reboot(view, policy, seen["idle"], allowed=allowed, now=time.time())
        except RigError as error:
            return {**result, "failed": True, "msg": str(error)}
        return {**result, "changed": False, "reboot": decided.to_json(), "idle": seen["idle"]}
