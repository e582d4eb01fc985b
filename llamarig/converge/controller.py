"""Who applies: what the host's lock and record say about the controller."""

from __future__ import annotations

import getpass
import hashlib
import os
import secrets
import socket
import time
from pathlib import Path
from typing import Any


def new_run() -> str:
    """A name for one run, sorted by time: ``20261129T160000Z-1a2b3c4d``."""
    return f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{secrets.token_hex(4)}"


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def process_started(pid: int) -> str:
    """The start time of a process in clock ticks since boot (proc(5), stat field 22); empty when it is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    fields = stat.rpartition(")")[2].split()
    state, started = fields[0], fields[19]
    return "" if state in "ZX" else started


def machine() -> str:
    """Names this machine's process numbers: equal only where a pid means the same process."""
    try:
        namespace = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        namespace = ""
    parts = [
        _read("/etc/machine-id"),
        _read("/proc/sys/kernel/random/boot_id"),
        socket.gethostname(),
        namespace,
    ]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def controller_facts() -> dict[str, Any]:
    """The process that runs Ansible, as the lock keeps it: ``who`` ``from`` ``machine`` ``pid`` ``started``."""
    try:
        who = getpass.getuser()
    except (KeyError, OSError):
        who = str(os.getuid())
    return {
        "who": who,
        "from": socket.gethostname(),
        "machine": machine(),
        "pid": os.getpid(),
        "started": process_started(os.getpid()),
    }


def is_gone(holder: dict[str, Any]) -> bool:
    """Whether a lock's holder was a process of this very machine that no longer runs."""
    if holder.get("machine") != machine() or not isinstance(holder.get("pid"), int):
        return False
    return process_started(holder["pid"]) != holder.get("started")
