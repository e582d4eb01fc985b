#!/usr/bin/python
"""Long work on a host as a transient systemd unit, which outlives the connection that started it.

Where systemd does not run the machine (a container that is made for a build), a detached process stands for the unit.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

from ansible.module_utils import rig_detached
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.rig_disk import open_plain, write_whole
from ansible.module_utils.rig_log import error_text

DOCUMENTATION = r"""
module: rig_job
short_description: Run a long job as a transient systemd unit, or as a detached process where there is no systemd
description:
  - C(started) starts the job, attaches to it when the same one runs already, and leaves one alone that has succeeded.
  - C(collected) ends a finished job and reports how it went; C(absent) ends it whatever it does.
options:
  name: {description: Name of the unit without C(.service)., type: str, required: true}
  state: {description: What to bring about., type: str, choices: [started, collected, absent], default: started}
  directory: {description: Directory of the job, owned by root; gets C(run.sh) and C(log)., type: path, required: true}
  mode: {description: Mode of the directory., type: str, choices: ["0755", "0700"], default: "0755"}
  commands:
    description: Commands in order, each a list of arguments; C({jobs}) in an argument is the number of jobs.
    type: list
    elements: list
    default: []
  scripts:
    description: Files that the commands need, name to content, written into the directory first.
    type: dict
    default: {}
  environment: {description: Variables of the commands., type: dict, default: {}}
  properties: {description: Properties of the unit, each C(Key=value)., type: list, elements: str, default: []}
  jobs: {description: Processes at once; 0 lets cores and memory decide., type: int, default: 0}
  job_mib: {description: Memory that one process may take, in MiB., type: int, default: 1024}
"""

RETURN = r"""
unit: {description: Name of the unit., type: str, returned: always}
log: {description: Path of the log., type: str, returned: always}
jobs: {description: Processes at once., type: int, returned: started}
rc: {description: Exit status of the job; -1 when it never ran or was killed., type: int, returned: collected}
result: {description: systemd's word for how it ended., type: str, returned: collected}
error: {description: The part of the log that says why it failed., type: str, returned: collected}
"""

LOG_LIMIT = 64 << 20


def _systemctl(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["systemctl", *words], capture_output=True, text=True, check=False)  # noqa: S603, S607 - fixed program


def _shown(unit: str, directory: Path) -> dict[str, str]:
    if not rig_detached.has_systemd():
        return rig_detached.shown(directory)
    keys = "LoadState,ActiveState,SubState,Result,ExecMainStatus,ExecMainCode,Description"
    lines = _systemctl("show", "-p", keys, unit).stdout.splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)


def _jobs(wanted: int, job_mib: int) -> int:
    """The lesser of cores and available memory over ``job_mib``, at least one."""
    if wanted:
        return wanted
    cores = len(os.sched_getaffinity(0))
    available = next(
        int(line.split()[1]) // 1024
        for line in Path("/proc/meminfo").read_text().splitlines()
        if line.startswith("MemAvailable:")
    )
    return max(1, min(cores, available // max(1, job_mib)))


def _script(commands: list[list[str]], jobs: int) -> str:
    lines = [shlex.join(str(word).replace("{jobs}", str(jobs)) for word in words) for words in commands]
    return "\n".join(["#!/bin/sh", "set -eu", *lines, ""])


def _identity(params: dict[str, Any]) -> str:
    """What makes two jobs the same: everything but the number of processes."""
    keys = ("commands", "scripts", "environment", "properties")
    text = json.dumps({key: params[key] for key in keys}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _clear(unit: str, directory: Path) -> None:
    if not rig_detached.has_systemd():
        rig_detached.clear(directory)
        return
    _systemctl("stop", unit)
    _systemctl("reset-failed", unit)


def _start(module: AnsibleModule, unit: str, log: Path) -> dict[str, Any]:
    params = module.params
    description = f"llamarig job {params['name']} {_identity(params)}"
    directory = Path(params["directory"])
    shown = _shown(unit, directory)
    answer: dict[str, Any] = {"unit": unit, "log": str(log)}
    same = shown.get("Description") == description
    if same and shown.get("ActiveState") in ("active", "activating", "reloading"):
        return {**answer, "changed": False, "attached": True}
    if module.check_mode:
        return {**answer, "changed": True}
    _clear(unit, directory)
    directory.mkdir(mode=0o755, parents=True, exist_ok=True)
    directory.chmod(int(params["mode"], 8))
    jobs = _jobs(params["jobs"], params["job_mib"])
    for name, content in params["scripts"].items():
        write_whole(directory / Path(name).name, content.encode())
    write_whole(directory / "run.sh", _script(params["commands"], jobs).encode())
    try:
        _launch(unit, description, directory, log, params)
    except (OSError, KeyError) as error:
        module.fail_json(msg=f"the job {unit} could not be started: {error}", unit=unit)
    return {**answer, "changed": True, "attached": False, "jobs": jobs}


def _launch(unit: str, description: str, directory: Path, log: Path, params: dict[str, Any]) -> None:
    """Start ``run.sh`` of the directory; OSError when that fails."""
    environment = {key: str(value) for key, value in params["environment"].items()}
    if not rig_detached.has_systemd():
        rig_detached.start(directory, description, environment, params["properties"])
        return
    command = [
        "systemd-run", "--quiet", f"--unit={unit}", f"--description={description}", "--service-type=exec",
        "--property=RemainAfterExit=yes", f"--property=StandardOutput=truncate:{log}",
        "--property=StandardError=inherit",
        *(f"--property={entry}" for entry in params["properties"]),
        *(f"--setenv={key}={value}" for key, value in sorted(environment.items())),
        "--", "/bin/sh", str(directory / "run.sh"),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - no shell, our own words
    if done.returncode != 0:
        raise OSError(done.stderr.strip())


def _log_text(log: Path) -> str:
    try:
        with os.fdopen(open_plain(log), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - LOG_LIMIT))
            return file.read(LOG_LIMIT).decode(errors="replace")
    except OSError:
        return ""


def _collect(unit: str, log: Path) -> dict[str, Any]:
    shown = _shown(unit, log.parent)
    answer: dict[str, Any] = {"changed": False, "unit": unit, "log": str(log), "result": shown.get("Result", "")}
    if shown.get("LoadState") != "loaded":
        return {**answer, "rc": -1, "result": "absent", "error": "the job is not there (was the host restarted?)"}
    if shown.get("SubState") in ("running", "start"):
        return {**answer, "rc": -1, "result": "running", "error": ""}
    failed = shown.get("Result") != "success" or shown.get("ExecMainStatus") != "0"
    exited = shown.get("ExecMainCode") == "1"
    answer["rc"] = int(shown.get("ExecMainStatus", "-1")) if exited or not failed else -1
    answer["error"] = error_text(_log_text(log)) if failed else ""
    _clear(unit, log.parent)
    return answer


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "state": {"type": "str", "choices": ["started", "collected", "absent"], "default": "started"},
            "directory": {"type": "path", "required": True},
            "mode": {"type": "str", "choices": ["0755", "0700"], "default": "0755"},
            "commands": {"type": "list", "elements": "list", "default": []},
            "scripts": {"type": "dict", "default": {}},
            "environment": {"type": "dict", "default": {}},
            "properties": {"type": "list", "elements": "str", "default": []},
            "jobs": {"type": "int", "default": 0},
            "job_mib": {"type": "int", "default": 1024},
        },
        supports_check_mode=True,
    )
    unit = f"{module.params['name']}.service"
    log = Path(module.params["directory"]) / "log"
    try:
        if module.params["state"] == "started":
            module.exit_json(**_start(module, unit, log))
        if module.params["state"] == "collected":
            module.exit_json(**_collect(unit, log))
        there = _shown(unit, log.parent).get("LoadState") == "loaded"
        if there and not module.check_mode:
            _clear(unit, log.parent)
        module.exit_json(changed=there, unit=unit, log=str(log))
    except OSError as error:
        module.fail_json(msg=f"the job {unit}: {error}")


if __name__ == "__main__":
    main()
