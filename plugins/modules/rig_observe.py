#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0
"""Look at a host in one round trip: files, packages, users, releases, models, units, processes, ports."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from ansible.module_utils import (
    rig_cuda_state,
    rig_driver_left,
    rig_nvidia,
    rig_power,
    rig_runtime,
    rig_state,
    rig_store,
    rig_system,
    rig_times,
)
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.rig_files import Hasher

DOCUMENTATION = r"""
module: rig_observe
short_description: Look at everything that llamarig manages on a host
description:
  - Reads files under /proc, /sys, /etc, /opt/llamarig and /var/lib; runs one C(systemctl show) and nothing else.
  - Changes nothing. Runs as root, on Python 3.11 or later, with the standard library alone.
options:
  probe:
    description: What to look at, see docs/contracts.md, Probe list.
    type: dict
    required: true
  salt:
    description:
      - Hex. When given, each key file comes back with C(digest), its HMAC-SHA256 with this key, for the action plugin
        of the same name, which replaces it by whether it agrees with the file on the controller.
    type: str
    default: ""
author: llamarig
"""

EXAMPLES = r"""
- name: Look at the host
  rig_observe:
    probe: "{{ llamarig_probe }}"
  register: looked
"""

RETURN = r"""
observed:
  description: What was seen, see docs/contracts.md, Observed state. All of it is hostile text.
  returned: success
  type: dict
"""

LONGEST = 4096
"""Characters of a string, and entries of a list, that are handed on."""
DEEPEST = 24


def capped(value: Any, depth: int = 0) -> Any:
    """The same data with strings and lists cut to what the contract allows, as clean UTF-8."""
    if isinstance(value, str):
        return value[:LONGEST].encode("utf-8", "backslashreplace").decode()
    if depth > DEEPEST:
        return None
    if isinstance(value, dict):
        return {capped(str(key)): capped(item, depth + 1) for key, item in list(value.items())[:LONGEST]}
    if isinstance(value, list):
        return [capped(item, depth + 1) for item in value[:LONGEST]]
    return value


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _texts(probe: dict[str, Any], key: str) -> list[str]:
    return [item for item in _list(probe.get(key)) if isinstance(item, str) and "\0" not in item]


def _models(probe: dict[str, Any]) -> tuple[list[str], list[str]]:
    entries = [entry for entry in _list(probe.get("models")) if isinstance(entry, dict)]
    paths = [str(entry["path"]) for entry in entries if entry.get("path")]
    links = [str(name) for entry in entries for name in _list(entry.get("links"))]
    return paths, links


def _toolkits(probe: dict[str, Any]) -> dict[str, Any]:
    """The CUDA toolkit of the probe list, by its version; what is no version reaches no path."""
    version = probe.get("toolkit")
    if not isinstance(version, str) or not rig_store.RELEASE_ID.fullmatch(version):
        return {}
    return {version: rig_cuda_state.look(f"{rig_store.ROOT}/cuda/{version}", bool(probe.get("deep")))}


def _driver(probe: Any, hasher: Hasher) -> dict[str, Any] | None:
    if not isinstance(probe, dict):
        return None
    expected = probe["files"] if isinstance(probe.get("files"), dict) else {}
    files = {path: rig_store.small_file(path, hasher, sha256) for path, sha256 in expected.items()}
    return rig_nvidia.observe(probe) | {"files": files}


def _unfinished(current: str | None) -> dict[str, Any] | None:
    held = rig_store.state(rig_store.HELD)
    release = (current or "").removeprefix("releases/")
    return None if held is None else held | {"begun": rig_state.begun(Path(rig_store.HELD), release)}


def observe(probe: dict[str, Any], run: rig_runtime.Run, salt: str = "") -> dict[str, Any]:
    """Everything that the probe list asks for."""
    record, state = rig_store.record(rig_store.RECORD)
    hasher = Hasher(rig_store.files_of(record) if state == "ok" else None, bool(probe.get("deep")))
    expected = probe["expected"] if isinstance(probe.get("expected"), dict) else {}
    current = rig_store.link(f"{rig_store.ROOT}/current")
    model_paths, links = _models(probe)
    homes = sorted({str(Path(path).parent.parent) for path in model_paths})
    files = dict.fromkeys([*_texts(probe, "files"), *(rig_store.settings_of(record) if state == "ok" else [])])
    left = rig_store.left_units(files)
    named = [Path(path).name for path in (*files, *left) if path.startswith(f"{rig_store.UNITS}/llama-")]
    credentials = _texts(probe, "credentials")
    releases = {
        name: rig_store.release(f"{rig_store.ROOT}/releases/{name}", hasher)
        for name in rig_store.release_ids(probe.get("release"), current, record)
    }
    power, driver = rig_power.look(hasher), _driver(probe.get("driver"), hasher)
    driver_left = rig_driver_left.look(probe.get("driver-left"))
    dated = [rig_store.RECORD, f"{rig_store.ROOT}/current", rig_times.PACKAGES, *rig_times.ACCOUNTS, *files, *left]
    dated += [*_texts(probe, "directories"), *credentials, *model_paths]
    dated += [*power["files"], *(driver or driver_left or {"files": ()})["files"]]
    units = rig_runtime.units(list(dict.fromkeys([*_texts(probe, "units"), *named, *rig_power.units(power)])), run)
    pids = [unit["main-pid"] for unit in units.values() if unit["main-pid"]]
    processes = {str(pid): rig_runtime.process(pid, hasher) for pid in pids}
    listens = [
        entry
        for entry in _list(probe.get("ports"))
        if isinstance(entry, dict) and isinstance(entry.get("address"), str) and isinstance(entry.get("port"), int)
    ]
    system = os.uname()
    return {
        "schema": 1,
        "hostname": system.nodename,
        "arch": system.machine,
        "boot-id": rig_system.boot_id(),
        "time": time.time(),
        "os": rig_system.os_release(),
        "kernel": system.release,
        "cores": os.cpu_count() or 0,
        "ram-mib": rig_system.ram_mib(),
        "disk": rig_system.disk([rig_store.ROOT, rig_store.STATE, *homes]),
        "packages": rig_system.packages(_texts(probe, "packages")),
        "users": rig_system.users(_texts(probe, "users")),
        "files": {path: rig_store.small_file(path, hasher, expected.get(path)) for path in (*files, *left)}
        # Of what may be a key file only that it is there: not even its hash leaves the host.
        | {path: rig_store.directory(path) for path in rig_store.left_settings({*files, *credentials})},
        "directories": {path: rig_store.directory(path) for path in _texts(probe, "directories")},
        "current": current,
        "releases": {name: found for name, found in releases.items() if found is not None},
        "toolkits": _toolkits(probe),
        "models": {path: hasher.describe(path) for path in model_paths},
        "links": {path: rig_store.link(path) for path in links},
        "credentials": {path: rig_store.credential(path, salt) for path in credentials},
        "units": units,
        "processes": {pid: found for pid, found in processes.items() if found is not None},
        "ports": rig_runtime.ports(listens, pids),
        "record": record,
        "record-state": state,
        "lock": rig_store.lock(rig_store.LOCK),
        "unfinished": _unfinished(current),
        "former": rig_store.state(rig_store.FORMER),
        "systemd": Path("/run/systemd/system").is_dir(),
        "gpus": rig_system.gpus(),
        "driver": driver,
        "driver-left": driver_left,
        "power": power,
        "changed": rig_times.changed(dated),
    }


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "probe": {"type": "dict", "required": True},
            "salt": {"type": "str", "default": "", "no_log": True},
        },
        supports_check_mode=True,
    )
    started = time.monotonic()
    try:
        observed = capped(observe(module.params["probe"], module.run_command, module.params["salt"]))
    except rig_runtime.SystemdError as error:
        module.fail_json(msg=capped(str(error)))
    module.exit_json(changed=False, observed=observed, seconds=round(time.monotonic() - started, 4))


if __name__ == "__main__":
    main()
