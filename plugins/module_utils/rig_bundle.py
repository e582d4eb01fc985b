"""What a machine says of its kernels, driver, cards and servers, in the words of its own tools.

Standard library only, used by ``rig_doctor``. Nothing is started but tools that read; each has its time, and what it
says is cut. A tool that is not there is part of the answer.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
SECONDS = 20
BYTES = 256 << 10
LINES = 400
NVIDIA_VENDOR = "0x10de"

SMI_FIELDS = (
    "index,uuid,pci.bus_id,name,driver_version,memory.total,memory.used,memory.reserved,power.limit,power.min_limit,"
    "power.max_limit,persistence_mode,display_active,pcie.link.gen.current,pcie.link.gen.max,pcie.link.width.current,"
    "pcie.link.width.max,temperature.gpu"
)
THROTTLE_FIELDS = (
    "uuid,clocks_event_reasons.sw_thermal_slowdown,clocks_event_reasons.hw_thermal_slowdown,"
    "clocks_event_reasons.hw_power_brake_slowdown,clocks_event_reasons.sw_power_cap"
)
COMMANDS: dict[str, list[str]] = {
    "dkms-status": ["dkms", "status"],
    "lspci": ["lspci", "-nnk", "-d", "10de:"],
    "nvidia-smi": ["nvidia-smi"],
    "nvidia-smi-cards": ["nvidia-smi", f"--query-gpu={SMI_FIELDS}", "--format=csv,nounits"],
    "nvidia-smi-throttle": ["nvidia-smi", f"--query-gpu={THROTTLE_FIELDS}", "--format=csv"],
    "nvidia-smi-processes": [
        "nvidia-smi",
        "--query-compute-apps=pid,process_name,gpu_uuid,used_memory",
        "--format=csv,nounits",
    ],
    "secure-boot": ["mokutil", "--sb-state"],
    "enrolled-keys": ["mokutil", "--list-enrolled"],
    "packages": [
        "dpkg-query",
        "-W",
        "-f=${db:Status-Abbrev} ${Package} ${Version}\\n",
        "*nvidia*",
        "cuda-*",
        "linux-image-*",
        "linux-headers-*",
    ],
    "dpkg-audit": ["dpkg", "--audit"],
    "holds": ["apt-mark", "showhold"],
    "libraries": ["ldconfig", "-p"],
    "persistence-daemon": ["systemctl", "is-active", "nvidia-persistenced.service"],
    "units": [
        "systemctl",
        "show",
        "--no-pager",
        "-p",
        "Id,LoadState,ActiveState,SubState,Result,NRestarts,ExecMainStatus",
        "llama-*.service",
    ],
}
KEPT = {"libraries": re.compile(r"libcuda\.so|libnvidia-ml\.so|libcudart\.so|libcublas\.so")}
"""Where only some lines of an answer matter."""
KERNEL_LINES = re.compile(
    r"NVRM|Xid|nvidia|nouveau|module verification|Lockdown|Loading of unsigned|oom-kill|Out of memory|PM: suspend",
    re.IGNORECASE,
)
FILES = {
    "uname": "/proc/sys/kernel/osrelease",
    "os-release": "/etc/os-release",
    "command-line": "/proc/cmdline",
    "driver-version": "/proc/driver/nvidia/version",
    "module-version": "/sys/module/nvidia/version",
    "power-state": "/var/lib/llamarig/power/state.json",
    "reboot-note": "/var/lib/llamarig/reboot.json",
    "boot-id": "/proc/sys/kernel/random/boot_id",
}
MODULES = re.compile(r"^(nvidia\w*|nouveau|nova_core) ")
MODINFO = ("version", "license", "sig_key", "signer", "vermagic")


def said(argv: list[str]) -> dict[str, Any]:
    """Status and words of one tool."""
    tool = shutil.which(argv[0], path=PATH)
    if tool is None:
        return {"status": 127, "text": f"{argv[0]} is not there"}
    try:
        done = subprocess.run(  # noqa: S603 - fixed programs and arguments, never a shell
            [tool, *argv[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=SECONDS,
            check=False,
            env={"PATH": PATH, "LC_ALL": "C"},
        )
    except subprocess.TimeoutExpired:
        return {"status": 124, "text": f"{argv[0]} gave no answer within {SECONDS} s"}
    except OSError as error:
        return {"status": 126, "text": str(error)}
    return {"status": done.returncode, "text": done.stdout[:BYTES].decode("utf-8", "replace")}


def kept(name: str, answer: dict[str, Any]) -> dict[str, Any]:
    """The answer without lines that do not matter."""
    pattern = KEPT.get(name)
    if pattern is None or answer["status"] != 0:
        return answer
    lines = [line for line in answer["text"].splitlines() if pattern.search(line)]
    return {**answer, "text": "\n".join(lines[:LINES])}


def text(path: str, size: int = 1 << 16) -> str:
    """The beginning of a file, empty when it cannot be read."""
    with contextlib.suppress(OSError), Path(path).open("rb") as stream:
        return stream.read(size).decode("utf-8", "replace")
    return ""


def kernels(root: str = "") -> list[dict[str, Any]]:
    """Every kernel that could boot: its headers, its NVIDIA module, and what that module says of itself."""
    found = []
    for image in sorted(Path(f"{root}/boot").glob("vmlinuz-*")):
        version = image.name.removeprefix("vmlinuz-")
        home = Path(f"{root}/lib/modules/{version}")
        modules = sorted(str(path)[len(root) :] for path in home.rglob("nvidia*.ko*"))[:16]
        entry: dict[str, Any] = {
            "version": version,
            "headers": (home / "build").exists(),
            "modules": modules,
            "info": {},
        }
        if modules and not root:
            answer = said(["modinfo", "-k", version, "nvidia"])
            if answer["status"] == 0:
                fields = (line.partition(":") for line in answer["text"].splitlines())
                entry["info"] = {name: value.strip() for name, _, value in fields if name in MODINFO}
            else:
                entry["info"] = {"error": answer["text"].strip()[:500]}
        found.append(entry)
    return found[:32]


def links(root: str = "") -> list[dict[str, str]]:
    """Width and speed of each NVIDIA card's link, present and possible, and the driver that has the card."""
    found = []
    for slot in sorted(Path(f"{root}/sys/bus/pci/devices").glob("*")):
        if text(str(slot / "vendor")).strip() != NVIDIA_VENDOR or not text(str(slot / "class")).startswith("0x03"):
            continue
        names = ("current_link_width", "max_link_width", "current_link_speed", "max_link_speed")
        entry = {name: text(str(slot / name), 64).strip() for name in names}
        driver = ""
        with contextlib.suppress(OSError):
            driver = (slot / "driver").readlink().name
        device = text(str(slot / "device"), 64).strip()
        found.append({"bus-id": slot.name, "device": device, "driver": driver, **entry})
    return found[:32]


def nodes(root: str = "") -> list[str]:
    """Device nodes of the driver."""
    with contextlib.suppress(OSError):
        return sorted(f"/dev/{name}" for name in os.listdir(f"{root}/dev") if name.startswith("nvidia"))[:64]  # noqa: PTH208 - names are enough
    return []


def kernel_log() -> dict[str, Any]:
    """Lines of this boot's kernel log that speak of cards, modules and memory."""
    answer = said(["journalctl", "-k", "-b", "--no-pager", "-q", "-o", "short-monotonic"])
    lines = [line[:500] for line in answer["text"].splitlines() if KERNEL_LINES.search(line)]
    return {"status": answer["status"], "text": "\n".join(lines[-LINES:])}


def server_logs() -> dict[str, Any]:
    """The last lines of every service of ours."""
    answer = said(["journalctl", "-u", "llama-*.service", "-n", "200", "--no-pager", "-q", "-o", "cat"])
    return {**answer, "text": "\n".join(line[:500] for line in answer["text"].splitlines()[-200:])}


def collect() -> dict[str, Any]:
    """The whole answer."""
    parts: dict[str, Any] = {name: {"status": 0, "text": text(path)} for name, path in FILES.items()}
    parts |= {name: kept(name, said(argv)) for name, argv in COMMANDS.items()}
    modules = [line for line in text("/proc/modules", 1 << 20).splitlines() if MODULES.match(line)]
    parts["modules"] = {"status": 0, "text": "\n".join(modules[:64])}
    parts["kernel-log"] = kernel_log()
    parts["server-log"] = server_logs()
    return {"schema": 1, "parts": parts, "kernels": kernels(), "links": links(), "nodes": nodes()}
