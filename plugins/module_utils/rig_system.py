"""What system a host is: its release, memory, disks, packages and users, read from files alone."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Any

from ansible.module_utils.rig_files import UnusualFileError, read_kernel, read_small

DPKG = "/var/lib/dpkg/status"
_SMALL_TABLE = 16 << 20
_INSTALLED = (["install"], ["hold"])
_PASSWD, _GROUP = 7, 4
"""Fields of a line of passwd and of group."""


def _text(path: str, limit: int = _SMALL_TABLE) -> str:
    try:
        return read_small(path, limit).decode("utf-8", "surrogateescape")
    except UnusualFileError:
        return ""


def os_release(root: str = "") -> dict[str, str]:
    """``id``, ``version`` and ``codename`` of the distribution."""
    found: dict[str, str] = {}
    for path in ("/etc/os-release", "/usr/lib/os-release"):
        # /etc/os-release is a link on most systems, so it is read through it, as the kernel's files are.
        text = read_kernel(root + path, 1 << 16).decode("utf-8", "replace")
        for line in text.splitlines():
            key, sign, value = line.partition("=")
            if sign and not line.startswith("#"):
                found[key.strip()] = value.strip().strip("\"'")
        if found:
            break
    return {
        "id": found.get("ID", ""),
        "version": found.get("VERSION_ID", ""),
        "codename": found.get("VERSION_CODENAME", ""),
    }


def ram_mib(root: str = "") -> float:
    """MemTotal in MiB, 0 when the kernel does not say."""
    for line in read_kernel(f"{root}/proc/meminfo", 1 << 16).splitlines():
        if line.startswith(b"MemTotal:"):
            return round(int(line.split()[1]) / 1024, 2)
    return 0.0


def disk(paths: list[str], root: str = "") -> dict[str, dict[str, Any]]:
    """Free and total MiB of the file system that holds, or would hold, each path."""
    result: dict[str, dict[str, Any]] = {}
    for path in paths:
        try:
            at = next(place for place in (Path(root + path), *Path(root + path).parents) if place.exists())
            space = os.statvfs(at)
            device = at.stat().st_dev
        except (OSError, ValueError, StopIteration):
            continue
        result[path] = {
            "free-mib": round(space.f_bavail * space.f_frsize / 2**20, 2),
            "total-mib": round(space.f_blocks * space.f_frsize / 2**20, 2),
            "device": device,
        }
    return result


def packages(names: list[str], root: str = "") -> dict[str, str | None]:
    """The installed version of each named package; None when it is not wholly installed."""
    found: dict[str, str | None] = dict.fromkeys(names)
    try:
        table = read_small(root + DPKG, 64 << 20)
    except UnusualFileError:
        return found
    wanted = {name.encode("utf-8", "surrogateescape"): name for name in names}
    for stanza in table.split(b"\n\n"):
        end = stanza.find(b"\n")
        line = stanza[:end] if end >= 0 else stanza
        if not line.startswith(b"Package: ") or line[9:] not in wanted:
            continue
        version = _installed(stanza)
        if version is not None:
            found[wanted[line[9:]]] = version
    return found


def _installed(stanza: bytes) -> str | None:
    state = version = ""
    for line in stanza.splitlines():
        if line.startswith(b"Status: "):
            state = line[8:].decode("utf-8", "replace")
        elif line.startswith(b"Version: "):
            version = line[9:].decode("utf-8", "replace").strip()
    words = state.split()
    good = words[:1] in _INSTALLED and words[1:] == ["ok", "installed"]
    return version if good and version else None


def users(names: list[str], root: str = "") -> dict[str, dict[str, Any] | None]:
    """passwd, group and shadow of the named users; ``locked``: no password opens the account."""
    found: dict[str, dict[str, Any] | None] = dict.fromkeys(names)
    if not names:
        return found
    rows = {
        fields[0]: fields
        for line in _text(f"{root}/etc/passwd").splitlines()
        if len(fields := line.split(":")) == _PASSWD
    }
    group_rows = [
        fields for line in _text(f"{root}/etc/group").splitlines() if len(fields := line.split(":")) == _GROUP
    ]
    by_gid = {fields[2]: fields[0] for fields in group_rows}
    shadow = dict(line.split(":", 2)[:2] for line in _text(f"{root}/etc/shadow").splitlines() if ":" in line)
    for name in names:
        row = rows.get(name)
        if row is None or not row[2].isdecimal():
            continue
        found[name] = {
            "uid": int(row[2]),
            "group": by_gid.get(row[3], row[3]),
            "home": row[5],
            "shell": row[6],
            "groups": sorted(fields[0] for fields in group_rows if name in fields[3].split(",")),
            "locked": shadow.get(name, "").startswith(("!", "*")),
        }
    return found


def gpus(root: str = "") -> list[dict[str, str]]:
    """NVIDIA cards on the PCI bus; the UUID only where the driver runs and says it."""
    base = f"{root}/sys/bus/pci/devices"
    found: list[dict[str, str]] = []
    try:
        slots = sorted(slot.name for slot in Path(base).iterdir())
    except OSError:
        return found
    for slot in slots:
        vendor = read_kernel(f"{base}/{slot}/vendor", 64).strip()
        family = read_kernel(f"{base}/{slot}/class", 64).strip()
        if vendor != b"0x10de" or not family.startswith(b"0x03"):
            continue
        card = {"bus-id": slot, "device": read_kernel(f"{base}/{slot}/device", 64).strip().decode("ascii", "replace")}
        for line in read_kernel(f"{root}/proc/driver/nvidia/gpus/{slot}/information", 1 << 16).splitlines():
            key, sign, value = line.decode("utf-8", "replace").partition(":")
            if sign and key.strip() == "GPU UUID":
                card["uuid"] = value.strip()
            if sign and key.strip() == "Model":
                card["model"] = value.strip()
        found.append(card)
    return found


def boot_id(root: str = "") -> str:
    """Changes with every boot."""
    return read_kernel(f"{root}/proc/sys/kernel/random/boot_id", 256).decode("ascii", "replace").strip()


def words(text: str) -> list[str]:
    """Split what systemd prints for a list of paths; quoted where it has to be."""
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()
