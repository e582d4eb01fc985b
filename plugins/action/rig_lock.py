# SPDX-License-Identifier: Apache-2.0
"""Take the host's lock, from a holder of this controller that is gone too; say who holds it otherwise."""

from __future__ import annotations

import time
from typing import Any

from ansible.plugins.action import ActionBase

from llamarig.converge.controller import is_gone


class ActionModule(ActionBase):
    _requires_connection = True
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        if self._task.check_mode:
            return {**result, "skipped": True, "msg": "a check changes nothing, so it takes no lock"}
        arguments = dict(self._task.args)
        answer = self._ask(arguments, task_vars)
        if "holder" not in answer or answer.get("held") or arguments.get("operation") == "release":
            return {**result, **answer}
        if arguments.get("operation") == "take" and is_gone(answer["holder"]):
            answer = self._ask({**arguments, "over": str(answer["holder"].get("run"))}, task_vars)
            if answer.get("failed") or answer.get("held"):
                return {**result, **answer}
        return {**result, **answer, "failed": True, "msg": _held_by(answer["holder"], arguments)}

    def _ask(self, arguments: dict[str, Any], task_vars: dict[str, Any] | None) -> dict[str, Any]:
        answer: dict[str, Any] = self._execute_module("rig_lock", module_args=arguments, task_vars=task_vars)
        return answer


def _held_by(holder: dict[str, Any], arguments: dict[str, Any]) -> str:
    if not holder:
        return "this run no longer holds the host's lock: it was broken, or the host was rebooted"
    since = holder.get("since")
    when = (
        time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(since))
        if isinstance(since, (int, float)) and 0 < since < 1 << 40
        else "an unknown time"
    )
    whom = f"{str(holder.get('who'))[:64]} on {str(holder.get('from'))[:64]} (process {str(holder.get('pid'))[:16]})"
    verb = "holds" if arguments.get("operation") == "take" else "took over"
    return f"another apply {verb} this host's lock: {whom}, since {when}, run {str(holder.get('run'))[:64]}"
