#!/usr/bin/python
"""Look at a machine that llamarig does not know yet: system, memory, cards, driver, what serves and listens."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from ansible.module_utils import rig_system
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.rig_files import read_kernel

DOCUMENTATION = r"""
module: rig_look
short_description: Look at a machine that is not managed yet
description:
  - Reads files under /proc, /sys and /etc, and asks C(nvidia-smi) where it is there. Changes nothing.
  - Runs as any user; as root it also sees which process listens where.
options: {}
author: llamarig
"""

EXAMPLES = r"""
- name: Look at the machine
  rig_look:
  register: looked
"""

RETURN = r"""
looked:
  description: What was seen. All of it is hostile text.
  returned: success
  type: dict
"""

TEXT = 512
ENTRIES = 256
SMI_SECONDS = 20
PATH = "/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/bin"
QUERY = ("name", "uuid", "pci.bus_id", "memory.total", "power.default_limit", "power.limit", "display_active")
PCI_IDS = ("/usr/share/misc/pci.ids", "/usr/share/hwdata/pci.ids")
NVIDIA = "10de"
LISTEN = "0A"
_SERVER = re.compile(r"(^|/)llama-server$")
_DEVICE = re.compile(r"\t([0-9a-f]{4})  (.+)")


def text(path: str, limit: int = 1 << 16) -> str:
    """A small file of the kernel or of the system, empty when it is not there."""
    return read_kernel(path, limit).decode("utf-8", "replace").strip()


def cards(root: str = "") -> list[dict[str, str]]:
    """NVIDIA cards on the PCI bus, with the kernel driver that holds each and its name in the system's own list."""
    names = device_names(root)
    found = []
    for card in rig_system.gpus(root):
        slot = Path(f"{root}/sys/bus/pci/devices/{card['bus-id']}")
        device = card["device"].removeprefix("0x")
        driver = ""
        with contextlib.suppress(OSError):
            driver = (slot / "driver").readlink().name
        found.append({**card, "device": device, "driver": driver, "listed": names.get(device, "")})
    return found


def device_names(root: str = "") -> dict[str, str]:
    """NVIDIA's devices by id from the system's pci.ids, empty where that is not installed."""
    for path in PCI_IDS:
        found: dict[str, str] = {}
        inside = False
        with contextlib.suppress(OSError), Path(root + path).open(errors="replace") as stream:
            for line in stream:
                if not line.startswith(("\t", "#", "\n")):
                    inside = line.startswith(NVIDIA)
                elif inside and (match := _DEVICE.match(line.rstrip("\n"))):
                    found[match[1]] = match[2]
        if found:
            return found
    return {}


def smi(root: str = "") -> dict[str, Any]:
    """What nvidia-smi says of each card, in its own words."""
    if root:
        return {"cards": [], "error": "not asked"}
    tool = shutil.which("nvidia-smi", path=PATH)
    if tool is None:
        return {"cards": [], "error": "nvidia-smi is not there"}
    argv = [tool, f"--query-gpu={','.join(QUERY)}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(  # noqa: S603 - a fixed program and arguments, never a shell
            argv,
            capture_output=True,
            timeout=SMI_SECONDS,
            check=False,
            env={"PATH": PATH, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"cards": [], "error": str(error)[:TEXT]}
    output = done.stdout.decode("utf-8", "replace")
    if done.returncode != 0:
        return {"cards": [], "error": (done.stderr.decode("utf-8", "replace") + output).strip()[:TEXT]}
    rows = [[field.strip()[:TEXT] for field in line.split(",")] for line in output.splitlines()[:ENTRIES]]
    return {"cards": [dict(zip(QUERY, row, strict=True)) for row in rows if len(row) == len(QUERY)], "error": ""}


def driver(root: str = "") -> dict[str, Any]:
    """The NVIDIA kernel module that is loaded, and whether it is the open one."""
    version = text(f"{root}/sys/module/nvidia/version", 256)
    said = text(f"{root}/proc/driver/nvidia/version", 4096)
    return {"version": version, "open": "Open Kernel Module" in said, "loaded": bool(version or said)}


def listening(root: str = "") -> dict[str, dict[str, Any]]:
    """TCP ports that are taken, by socket inode."""
    found: dict[str, dict[str, Any]] = {}
    for table in ("tcp", "tcp6"):
        for line in text(f"{root}/proc/net/{table}", 4 << 20).splitlines()[1:]:
            fields = line.split()
            with contextlib.suppress(ValueError, IndexError):
                if fields[3] == LISTEN:
                    found[fields[9]] = {"port": int(fields[1].rpartition(":")[2], 16), "table": table}
    return found


def servers(root: str = "") -> list[dict[str, Any]]:
    """llama-server processes that run already: command line, unit and, where it may be seen, their ports."""
    sockets = listening(root)
    found = []
    for place in sorted(Path(f"{root}/proc").glob("[0-9]*"), key=lambda path: int(path.name)):
        argv = [
            word for word in read_kernel(f"{place}/cmdline", 1 << 16).decode("utf-8", "replace").split("\0") if word
        ]
        if not argv or not _SERVER.search(argv[0]):
            continue
        unit = text(f"{place}/cgroup", 4096).rpartition("/")[2]
        found.append({
            "pid": int(place.name),
            "executable": argv[0][:TEXT],
            "unit": unit if unit.endswith(".service") else "",
            "ports": sorted(sockets[inode]["port"] for inode in _inodes(place) if inode in sockets),
        })  # fmt: skip
    return found[:ENTRIES]


def _inodes(place: Path) -> list[str]:
    found = []
    with contextlib.suppress(OSError):
        for entry in (place / "fd").iterdir():
            with contextlib.suppress(OSError):
                target = str(entry.readlink())
                if target.startswith("socket:["):
                    found.append(target[8:-1])
    return found


def capped(value: Any) -> Any:
    """The same data with strings and lists cut."""
    if isinstance(value, str):
        return value[:TEXT].encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {key: capped(item) for key, item in value.items()}
    if isinstance(value, list):
        return [capped(item) for item in value[:ENTRIES]]
    return value


def look(root: str = "") -> dict[str, Any]:
    """Everything that a first spec needs; ``root`` is where a system's files lie."""
    system = os.uname()
    return {
        "schema": 1,
        "hostname": text(f"{root}/proc/sys/kernel/hostname", 256) or system.nodename,
        "os": rig_system.os_release(root),
        "kernel": text(f"{root}/proc/sys/kernel/osrelease", 256) or system.release,
        "arch": system.machine,
        "cores": os.cpu_count() or 0,
        "ram-mib": rig_system.ram_mib(root),
        "disk": rig_system.disk(["/opt/llamarig", "/var/lib/llamarig"], root),
        "systemd": Path(f"{root}/run/systemd/system").is_dir(),
        "host-key": text(f"{root}/etc/ssh/ssh_host_ed25519_key.pub", 4096),
        "cards": cards(root),
        "driver": driver(root),
        "smi": smi(root),
        "servers": servers(root),
        "ports": sorted({entry["port"] for entry in listening(root).values()}),
    }


def main() -> None:
    module = AnsibleModule(argument_spec={}, supports_check_mode=True)
    module.exit_json(changed=False, looked=capped(look()))


if __name__ == "__main__":
    main()
