"""What the host itself says of a service: who listens, what its start wrote, what it maps and what the driver counts.

Standard library only, used by ``rig_probe``.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import socket
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

from ansible.module_utils.rig_runtime import foreign_code
from ansible.module_utils.rig_talk import BODY, HERE, LISTS, TEXT, deadline

JOURNAL_BYTES = 8 << 20
JOURNAL_LINES = 200
JOURNAL_SECONDS = 15
SMI_SECONDS = 20
PATH = "/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/bin"
TCP_LISTEN = "0A"

TELLING = re.compile(
    r"buffer size|offload|ggml_cuda_init|^\s*Device \d+:|using device|CLIP using|no usable GPU|CUDA error|"
    r"compiled without|failed to initialize|no CUDA|falling back|unable to allocate|out of memory|warning: .*GPU",
    re.IGNORECASE,
)
"""Lines of a start that say which device holds what."""


def run(argv: list[str], seconds: float) -> str:
    """Standard output of a program, or OSError in its own words."""
    try:
        done = subprocess.run(  # noqa: S603 - a fixed program and arguments, never a shell
            argv,
            capture_output=True,
            timeout=seconds,
            check=False,
            env={"PATH": PATH, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired as error:
        raise OSError(f"{argv[0]} gave no answer within {seconds:g} s") from error
    if done.returncode != 0:
        words = (done.stderr or done.stdout).decode("utf-8", "replace").strip()
        raise OSError(f"{argv[0]} ended with {done.returncode}: {words[:TEXT]}")
    return done.stdout[:BODY].decode("utf-8", "replace")


def unit_state(unit: str) -> dict[str, str]:
    """MainPID and InvocationID of a unit."""
    text = run(["systemctl", "show", "-p", "MainPID,InvocationID", "--", unit], 10)
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def _socket_inodes(pid: int) -> set[str]:
    found = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            target = str(entry.readlink())
            if target.startswith("socket:["):
                found.add(target[8:-1])
    return found


def _address(text: str) -> str:
    """An address from /proc/net/tcp or tcp6, whose 32-bit words stand in the machine's own order."""
    raw = bytes.fromhex(text)
    words = [raw[at : at + 4] for at in range(0, len(raw), 4)]
    if sys.byteorder == "little":
        words = [word[::-1] for word in words]
    return socket.inet_ntop(socket.AF_INET if len(words) == 1 else socket.AF_INET6, b"".join(words))


def listeners(address: str, port: int) -> set[str]:
    """Inodes of the TCP sockets that could take a connection to ``address`` and ``port``."""
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(table).read_text().splitlines()[1:]:
                fields = line.split()
                host, _, number = fields[1].rpartition(":")
                if fields[3] == TCP_LISTEN and int(number, 16) == port and _address(host) in {address, *HERE}:
                    found.add(fields[9])
    return found


def owner(service: dict[str, Any], pid: int) -> dict[str, Any]:
    """Whether only the unit's main process can answer at the service's address."""
    if not pid:
        return {"pid": 0, "ours": False, "why": "the unit has no main process"}
    try:
        if not service["port"]:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
                sock.settimeout(5)
                sock.connect(service["address"])
                peer = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
            return {"pid": peer, "ours": peer == pid, "why": "" if peer == pid else f"process {peer} listens there"}
        open_ = listeners(service["address"], service["port"])
        ours = bool(open_) and open_ <= _socket_inodes(pid)
    except OSError as error:
        return {"pid": 0, "ours": False, "why": str(error)[:TEXT]}
    return {
        "pid": pid if ours else 0,
        "ours": ours,
        "why": "" if ours else "nothing listens there" if not open_ else "a socket there is not the unit's own",
    }


def journal(invocation: str) -> dict[str, Any]:
    """Lines of one start of a unit that say which device holds what."""
    if not re.fullmatch(r"[0-9a-f]{32}", invocation):
        return {"lines": [], "error": "the unit was never started"}
    lines: list[str] = []
    argv = ["journalctl", "--no-pager", "-q", "-o", "cat", f"_SYSTEMD_INVOCATION_ID={invocation}"]
    read = 0
    try:
        with (
            deadline(JOURNAL_SECONDS),
            subprocess.Popen(  # noqa: S603 - a fixed program, and an id of 32 hex digits
                argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={"PATH": PATH, "LC_ALL": "C"}
            ) as reader,
        ):
            try:
                assert reader.stdout is not None  # noqa: S101 - for the type checker: stdout is a pipe
                while read < JOURNAL_BYTES and len(lines) < JOURNAL_LINES:
                    line = reader.stdout.readline(TEXT * 4)
                    if not line:
                        break
                    read += len(line)
                    text = line.decode("utf-8", "replace").rstrip()[:TEXT]
                    if TELLING.search(text):
                        lines.append(text)
            finally:
                reader.kill()
    except OSError as error:
        return {"lines": lines, "error": str(error)[:TEXT]}
    return {"lines": lines, "error": ""}


def vram() -> dict[str, Any]:
    """What the driver says each process holds on each card, in MiB."""
    tool = shutil.which("nvidia-smi", path=PATH)
    if tool is None:
        return {"processes": [], "error": "nvidia-smi is not there"}
    try:
        text = run(
            [tool, "--query-compute-apps=pid,gpu_uuid,used_memory", "--format=csv,noheader,nounits"], SMI_SECONDS
        )
    except OSError as error:
        return {"processes": [], "error": str(error)[:TEXT]}
    found = []
    for line in text.splitlines()[:LISTS]:
        with contextlib.suppress(ValueError):
            pid, uuid, used = (field.strip() for field in line.split(","))
            # Some drivers and virtual machines print [N/A] here: not known is not zero.
            mib = float(used) if used.replace(".", "", 1).isdigit() else None
            found.append({"pid": int(pid), "uuid": uuid, "mib": mib})
    return {"processes": found, "error": ""}


def mapped(pid: int, release: str) -> dict[str, Any]:
    """Code that a process maps from outside its release and the system's directories, and its model files."""
    own = f"{release.rstrip('/')}/" if release else "/opt/llamarig/"
    outside: set[str] = set()
    models: dict[str, dict[str, Any]] = {}
    try:
        with Path(f"/proc/{pid}/maps").open(errors="replace") as stream:
            for line in stream:
                _range, mode, _offset, _device, inode, *rest = line.rstrip("\n").split(None, 5)
                path = rest[0] if rest else ""
                if not path.startswith("/"):
                    continue
                if foreign_code(path, mode) and not path.startswith(own):
                    outside.add(path)
                if path.removesuffix(" (deleted)").endswith(".gguf") or "/sha256/" in path:
                    models[path] = {"path": path, "inode": int(inode), "deleted": path.endswith(" (deleted)")}
    except (OSError, ValueError) as error:
        return {"outside": [], "models": [], "error": str(error)[:TEXT]}
    return {"outside": sorted(outside)[:LISTS], "models": list(models.values())[:LISTS], "error": ""}
