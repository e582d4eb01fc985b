"""What runs on a host: units, their main processes, and who owns a port."""

from __future__ import annotations

import ipaddress
import os
import re
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ansible.module_utils.rig_files import Hasher, UnusualFileError, owner_name, read_kernel, read_link
from ansible.module_utils.rig_system import words

ROOT = "/opt/llamarig"
PREFIXES = ("LLAMA_", "GGML_", "MTMD_", "CUDA_")
HIDDEN = "<hidden>"
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|AUTH")
_SECRET_FLAGS = ("--api-key", "--hf-token", "-hft")
_UNIT_NAME = re.compile(r"[A-Za-z0-9:_.\\@-]+\.(service|socket|timer|target)")
_PROPERTIES = (
    "Id",
    "LoadState",
    "ActiveState",
    "SubState",
    "UnitFileState",
    "MainPID",
    "NRestarts",
    "FragmentPath",
    "DropInPaths",
    "NeedDaemonReload",
    "Result",
    "ActiveEnterTimestamp",
    "InactiveEnterTimestamp",
)
_DROP_IN_HOMES = (
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
)
_LIBRARIES = ("/usr/lib/", "/usr/lib64/", "/lib/", "/lib64/", "/usr/local/cuda")
"""Where the system's packages, the driver's and the CUDA toolkit's keep libraries."""
_BOOTED = "/run/systemd/system"
"""There where systemd runs the machine, sd_booted(3)."""
_LISTEN = "0A"
_MAPS, _UNIX, _TCP = 6, 8, 10
"""Fields of a line of maps, of net/unix and of net/tcp that are read."""


Run = Callable[[list[str]], tuple[int, str, str]]
"""AnsibleModule.run_command: status, output, errors."""


class SystemdError(Exception):
    """systemd did not tell about its units; the text has systemctl's own words."""


def foreign_code(path: str, mode: str) -> bool:
    """Whether a mapping of a process is code that neither a release nor the system's packages brought."""
    return "x" in mode and path.startswith("/") and not path.startswith((*_LIBRARIES, f"{ROOT}/"))


def units(names: list[str], run: Run) -> dict[str, dict[str, Any]]:
    """State of every named unit, from one call of systemctl; empty where systemd does not run the machine."""
    good = [name for name in names if _UNIT_NAME.fullmatch(name)]
    if not good or not Path(_BOOTED).is_dir():
        return {}
    status, output, errors = run(
        ["/usr/bin/systemctl", "show", "--timestamp=unix", "--property=" + ",".join(_PROPERTIES), "--", *good]
    )
    blocks = output.strip("\n").split("\n\n") if output.strip() else []
    if status or len(blocks) != len(good):
        said = errors.strip() or f"it told of {len(blocks)} units instead of {len(good)}, with status {status}"
        raise SystemdError(f"systemctl show failed: {said}{_unreadable_names(good)}")
    return {name: _unit(name, block) for name, block in zip(good, blocks, strict=True)}


def _unit(name: str, block: str) -> dict[str, Any]:
    raw = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
    return {
        "load": raw.get("LoadState", ""),
        "active": raw.get("ActiveState", ""),
        "sub": raw.get("SubState", ""),
        "enabled": raw.get("UnitFileState", ""),
        "main-pid": _number(raw.get("MainPID")),
        "restarts": _number(raw.get("NRestarts")),
        "fragment": raw.get("FragmentPath", ""),
        "drop-ins": sorted({*words(raw.get("DropInPaths", "")), *_drop_ins(name)}),
        "need-reload": raw.get("NeedDaemonReload") == "yes",
        "result": raw.get("Result", ""),
        "started": _seconds(raw.get("ActiveEnterTimestamp", "")),
        "stopped": _seconds(raw.get("InactiveEnterTimestamp", "")),
    }


def _drop_ins(name: str) -> list[str]:
    """Drop-ins on disk, also those that systemd has not read yet."""
    places = [f"{name}.d", f"{name.partition('-')[0]}-.{name.rpartition('.')[2]}.d"]
    return [str(path) for home in _DROP_IN_HOMES for place in places for path in Path(home, place).glob("*.conf")]


def _unreadable_names(names: list[str]) -> str:
    """Drop-ins whose names systemd cannot tell over its bus, which makes all of its answer fail."""
    found = sorted({path for name in names for path in _drop_ins(name) if not path.isprintable()})
    shown = ", ".join(ascii(path) for path in found[:5])
    return f"; remove the drop-ins whose names are not UTF-8: {shown}" if found else ""


def _number(text: str | None) -> int:
    return int(text) if text and text.isdecimal() else 0


def _seconds(text: str) -> float | None:
    return float(text[1:]) if text[:1] == "@" and text[1:].isdecimal() and text != "@0" else None


def process(pid: int, hasher: Hasher, root: str = "") -> dict[str, Any] | None:
    """Executable, arguments, planned variables, mapped libraries and devices of a process; None when it is gone."""
    base = f"{root}/proc/{pid}"
    try:
        exe = read_link(f"{base}/exe")
    except OSError:
        return None
    status = dict(line.split(b":", 1) for line in read_kernel(f"{base}/status", 1 << 16).splitlines() if b":" in line)
    uids = status.get(b"Uid", b"").split()
    mapped, libcuda = _mapped(base, hasher)
    return {
        "exe": exe.removesuffix(" (deleted)"),
        "deleted": exe.endswith(" (deleted)"),
        "exe-sha256": _hash_of_link(f"{base}/exe", hasher),
        "argv": hide_arguments(_strings(f"{base}/cmdline")),
        "environment": _environment(base),
        "user": owner_name(int(uids[1])) if len(uids) > 1 else "",
        "mapped": mapped,
        "devices": _devices(base),
        "libcuda": libcuda,
    }


def _strings(path: str) -> list[str]:
    data = read_kernel(path, 4 << 20)
    return [os.fsdecode(part) for part in data.removesuffix(b"\0").split(b"\0")] if data else []


def hide_arguments(argv: list[str]) -> list[str]:
    """The arguments without a secret that somebody put on the command line by hand."""
    shown: list[str] = []
    for word in argv:
        flag, sign, _ = word.partition("=")
        if shown and shown[-1] in _SECRET_FLAGS:
            shown.append(HIDDEN)
        else:
            shown.append(f"{flag}={HIDDEN}" if sign and flag in _SECRET_FLAGS else word)
    return shown


def _environment(base: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in _strings(f"{base}/environ"):
        key, sign, value = text.partition("=")
        if sign and key.startswith(PREFIXES):
            found[key] = HIDDEN if _SECRET_NAME.search(key) else value
    return found


def _hash_of_link(path: str, hasher: Hasher) -> str | None:
    """Hash of what a kernel link under /proc leads to, also when its name is gone."""
    try:
        known = hasher.known(Path(path).stat())
        return known[0] if known else hasher.of_path(path, follow=True)[0]
    except (OSError, UnusualFileError):
        return None


def _mapped(base: str, hasher: Hasher) -> tuple[dict[str, str | None], bool]:
    """Our mapped files by hash, code from elsewhere without one, and whether a CUDA driver library is mapped."""
    found: dict[str, str | None] = {}
    libcuda = False
    for line in read_kernel(f"{base}/maps").splitlines():
        fields = line.split(None, 5)
        if len(fields) < _MAPS or fields[4] == b"0":
            continue
        path = os.fsdecode(fields[5]).removesuffix(" (deleted)")
        libcuda = libcuda or "/libcuda.so" in path
        if path not in found and foreign_code(path, fields[1].decode("ascii", "replace")):
            found[path] = None
        elif path.startswith(ROOT + "/") and path not in found:
            found[path] = _hash_of_link(f"{base}/map_files/{fields[0].decode()}", hasher)
    return found, libcuda


def _descriptors(base: str) -> list[str]:
    found: list[str] = []
    try:
        with os.scandir(f"{base}/fd") as entries:
            for entry in entries:
                try:
                    found.append(read_link(entry.path))
                except OSError:
                    continue
    except OSError:
        pass
    return found


def _devices(base: str) -> list[str]:
    return sorted({name for name in _descriptors(base) if name.startswith(("/dev/nvidia", "/dev/dri/", "/dev/kfd"))})


def ports(probes: list[dict[str, Any]], main_pids: list[int], root: str = "") -> dict[str, list[dict[str, Any]]]:
    """Who listens where a service is to listen; the main processes are asked first, all others only if needed."""
    inodes = {f"{probe['address']}:{probe['port']}": _inodes(probe, root) for probe in probes}
    missing = {f"socket:[{inode}]": inode for group in inodes.values() for inode in group}
    owners: dict[str, list[int]] = {}
    for pid in main_pids:
        _find(pid, missing, owners, root)
    if missing:
        others = sorted(int(place.name) for place in Path(f"{root}/proc").iterdir() if place.name.isdecimal())
        for pid in others:
            if not missing:
                break
            _find(pid, missing, owners, root)
    return {
        place: [{"pid": pid, "command": _command(pid, root)} for inode in group for pid in owners.get(inode, [0])]
        for place, group in inodes.items()
    }


def _find(pid: int, missing: dict[str, str], owners: dict[str, list[int]], root: str) -> None:
    for name in _descriptors(f"{root}/proc/{pid}"):
        if name in missing:
            owners[missing.pop(name)] = [pid]


def _command(pid: int, root: str) -> str:
    return read_kernel(f"{root}/proc/{pid}/comm", 256).decode("utf-8", "replace").rstrip("\n") if pid else ""


def _inodes(probe: dict[str, Any], root: str) -> list[str]:
    if probe["port"] == 0:
        return [
            fields[6]
            for line in read_kernel(f"{root}/proc/net/unix").decode("utf-8", "replace").splitlines()
            if len(fields := line.split(None, 7)) == _UNIX and fields[7] == probe["address"] and fields[3] == "00010000"
        ]
    found: list[str] = []
    for table in ("tcp", "tcp6"):
        for line in read_kernel(f"{root}/proc/net/{table}").decode("ascii", "replace").splitlines()[1:]:
            fields = line.split()
            if len(fields) < _TCP or fields[3] != _LISTEN:
                continue
            address, _, port = fields[1].partition(":")
            if int(port, 16) == probe["port"] and _collide(address, probe["address"]):
                found.append(fields[9])
    return found


def _collide(table: str, wanted: str) -> bool:
    """Whether a listener (in the kernel's hex) keeps a service from its address; a name collides with all."""
    try:
        mine = ipaddress.ip_address(wanted.strip("[]"))
        raw = bytes.fromhex(table)
        words_ = [raw[at : at + 4][::-1] if _little() else raw[at : at + 4] for at in range(0, len(raw), 4)]
        theirs: Any = ipaddress.ip_address(b"".join(words_))
    except ValueError:
        return True
    theirs = getattr(theirs, "ipv4_mapped", None) or theirs
    if theirs.is_unspecified and theirs.version >= mine.version:  # [::] takes IPv4 as well
        return True
    return bool(mine == theirs or (mine.is_unspecified and mine.version >= theirs.version))


def _little() -> bool:
    return socket.ntohl(1) != 1
