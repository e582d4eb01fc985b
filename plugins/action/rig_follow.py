"""Follow a job of rig_job until it ends: progress while it runs, its own error text when it fails."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase

from llamarig.converge.events import progress

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "module_utils"))
from rig_log import last_step  # noqa: E402 - the same reader on both sides of the wire

INTERVAL_S = 2.0
LOCK_EVERY_S = 30.0
OUTAGE_S = 180.0


class ActionModule(ActionBase):  # type: ignore[misc] # ansible-core ships no types
    """Arguments: ``name`` and ``directory`` as of rig_job; ``label`` and ``unit`` for the progress; ``lock`` (dict)
    gives arguments for rig_lock, called now and then to renew the lock while the job runs."""

    _requires_connection = True
    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        super().run(tmp, task_vars)
        args = self._task.args
        if self._task.check_mode:
            return {"changed": False, "skipped": True, "msg": "check mode: there is no job to follow"}
        self._follow(args, task_vars or {})
        job = {"name": args["name"], "directory": args["directory"], "state": "collected"}
        result: dict[str, Any] = self._execute_module("rig_job", job, task_vars=task_vars)
        result["changed"] = result.get("rc") == 0
        if result.get("rc") != 0:
            result.update(failed=True, msg=self._failure(args, result))
        return result

    def _follow(self, args: dict[str, Any], task_vars: dict[str, Any]) -> None:
        unit = shlex.quote(f"{args['name']}.service")
        log = shlex.quote(f"{args['directory']}/log")
        command = f"systemctl show -p SubState --value {unit}; tail -c 4096 {log} 2>/dev/null || true"
        renewed = last_answer = time.monotonic()
        shown: tuple[int, int] | None = None
        while True:
            try:
                answer = str(self._low_level_execute_command(command)["stdout"])
                last_answer = time.monotonic()
            except AnsibleConnectionFailure:
                # The job goes on without us; only a host that stays away ends the wait.
                if time.monotonic() - last_answer > OUTAGE_S:
                    raise
                time.sleep(INTERVAL_S)
                continue
            state, _, tail = answer.partition("\n")
            step = last_step(tail)
            if step and step != shown:
                progress(str(task_vars.get("inventory_hostname", "")), args["label"], *step, args.get("unit", "steps"))
                shown = step
            if state.strip() not in ("running", "start"):
                return
            if args.get("lock") and time.monotonic() - renewed > LOCK_EVERY_S:
                self._renew(args["lock"], task_vars)
                renewed = time.monotonic()
            time.sleep(INTERVAL_S)

    def _renew(self, lock: dict[str, Any], task_vars: dict[str, Any]) -> None:
        answer = self._execute_module("rig_lock", dict(lock), task_vars=task_vars)
        if answer.get("failed"):
            self._display.warning(f"the lock could not be renewed: {answer.get('msg', '')}")

    @staticmethod
    def _failure(args: dict[str, Any], result: dict[str, Any]) -> str:
        how = {
            "oom-kill": "the machine ran out of memory; give engine.build a smaller `jobs` or a bigger `job-mib`",
            "timeout": "it ran past its time limit",
            "absent": "apply again: what was finished is not done again",
        }.get(str(result.get("result")), "the text above is the tool's own; mend its cause and apply again")
        return f"{args['label']} failed (exit status {result.get('rc')}):\n{result.get('error', '')}\nfix: {how}"
