"""Follow a long job on a host: progress while it runs, its own words when it fails.

The job is a unit of systemd, or a detached process where there is none (module ``rig_job``). It goes on when the
controller is interrupted or the connection is cut, so whoever follows may come back later.
"""

from __future__ import annotations

import re
import shlex
import time
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure

from llamarig.converge.events import progress
from llamarig.paths import data_root

INTERVAL_S = 2.0
LOCK_EVERY_S = 30.0
OUTAGE_S = 180.0
SYSTEMD = "/run/systemd/system"
_STEP = re.compile(r"\[(\d+)/(\d+)\]")
_ADVICE = {
    "oom-kill": "the machine ran out of memory; give engine.build a smaller `jobs` or a bigger `job-mib`",
    "timeout": "it ran past its time limit",
    "signal": "something on the host ended it; apply again: what was finished is not done again",
    "absent": "apply again: what was finished is not done again",
}


def utilities() -> Path:
    """The directory of the code that runs on both sides of the wire."""
    return data_root() / "plugins" / "module_utils"


def _last_step(text: str) -> tuple[int, int] | None:
    steps = _STEP.findall(text)
    return (int(steps[-1][0]), int(steps[-1][1])) if steps else None


class LockKeeper:
    """Renews the host's lock now and then while something long goes on; ``lock`` are arguments for rig_lock."""

    def __init__(self, action: Any, lock: dict[str, Any] | None, task_vars: dict[str, Any]) -> None:
        self._action, self._lock, self._task_vars = action, lock, task_vars
        self._renewed = time.monotonic()

    def renew(self) -> None:
        """Renew it when half a minute has passed. Fails the task when another run has taken it."""
        if not self._lock or time.monotonic() - self._renewed < LOCK_EVERY_S:
            return
        answer = self._action._execute_module("rig_lock", dict(self._lock), task_vars=self._task_vars)
        if answer.get("failed"):
            raise AnsibleActionFail("this run no longer holds the host's lock, so it stops here")
        self._renewed = time.monotonic()


def follow(action: Any, job: dict[str, Any], label: str, unit: str, task_vars: dict[str, Any]) -> dict[str, Any]:
    """Wait for the job (``name``, ``directory``, perhaps ``lock``) and return its result, failed with its own text.

    ``action`` is the action plugin that asks. Raises Ansible's connection error only
    when the host stays away for three minutes.
    """
    _wait(action, job, label, unit, task_vars)
    asked = {"name": job["name"], "directory": job["directory"], "state": "collected"}
    result: dict[str, Any] = action._execute_module("rig_job", asked, task_vars=task_vars)
    result["changed"] = result.get("rc") == 0
    if result.get("rc") != 0:
        said = result.get("error") or result.get("msg", "")
        advice = _ADVICE.get(str(result.get("result")), "the text above is the tool's own; mend its cause, apply again")
        result.update(failed=True, msg=f"{label} failed (exit status {result.get('rc')}):\n{said}\nfix: {advice}")
    return result


def _state(job: dict[str, Any]) -> str:
    """A command that prints the state of a job in one line: systemd's word, or that of a detached process."""
    unit, directory = shlex.quote(f"{job['name']}.service"), shlex.quote(str(job["directory"]))
    # Of /proc/PID/stat the state and the start time; the name of the process is `python3`, without spaces.
    detached = (
        f"if [ -e {directory}/rc ] || ! read -r pid started rest 2>/dev/null <{directory}/pid; then echo exited; "
        'else set -- $(cat "/proc/$pid/stat" 2>/dev/null); '
        'if [ "${22}" = "$started" ] && [ "$3" != Z ]; then echo running; else echo failed; fi; fi'
    )
    return f"if [ -d {SYSTEMD} ]; then systemctl show -p SubState --value {unit}; else {detached}; fi"


def _wait(action: Any, job: dict[str, Any], label: str, unit: str, task_vars: dict[str, Any]) -> None:
    host = str(task_vars.get("inventory_hostname", ""))
    log = shlex.quote(f"{job['directory']}/log")
    command = f"{_state(job)}; tail -c 4096 {log} 2>/dev/null || true"
    lock = LockKeeper(action, job.get("lock"), task_vars)
    answered = time.monotonic()
    told: tuple[int, int] | None = None
    while True:
        try:
            answer = str(action._low_level_execute_command(command)["stdout"])
            answered = time.monotonic()
        except AnsibleConnectionFailure:
            # The job goes on without us; only a host that stays away ends the wait.
            if time.monotonic() - answered > OUTAGE_S:
                raise
            time.sleep(INTERVAL_S)
            continue
        state, _, tail = answer.partition("\n")
        step = _last_step(tail)
        if step and step != told:
            progress(host, label, *step, unit)
            told = step
        if state.strip() not in ("running", "start"):
            return
        lock.renew()
        time.sleep(INTERVAL_S)
