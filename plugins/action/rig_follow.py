"""Follow a job of rig_job until it ends: progress while it runs, its own error text when it fails."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from llamarig.converge.jobs import follow


class ActionModule(ActionBase):
    """Arguments: ``name`` and ``directory`` as of rig_job, ``label`` and ``unit`` for the progress, and ``lock``,
    arguments for rig_lock, called now and then while the job runs."""

    _requires_connection = True
    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        super().run(tmp, task_vars)
        args = self._task.args
        if self._task.check_mode:
            return {"changed": False, "skipped": True, "msg": "check mode: there is no job to follow"}
        return follow(self, args, str(args["label"]), str(args.get("unit", "steps")), task_vars or {})
