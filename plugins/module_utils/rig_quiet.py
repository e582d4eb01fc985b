"""Who would notice a restart or a reboot: requests that a server answers or has had, users that are logged in."""

from __future__ import annotations

import os
import pwd
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ansible.module_utils import rig_talk, rig_witness

SESSIONS = "/run/systemd/sessions"
_TASK = re.compile(r"launch_slot_.*processing task|done request: POST ")
"""What the engine writes when a slot begins with a request (server-context.cpp), and when one was answered."""
_PARENTS = 64
PAM = "/etc/pam.d/common-session"
_MULTIPLEXER = re.compile(r"tmux|screen", re.IGNORECASE)
_PTS = 136
"""The first of the eight major numbers of pseudo terminals (Linux's admin-guide/devices.txt)."""
POLL_S = 1.0
LOCALTIME = "/etc/localtime"


def ancestors(pid: int, root: str = "/proc") -> set[int]:
    """A process and those that it descends from."""
    found: set[int] = set()
    while pid > 1 and pid not in found and len(found) < _PARENTS:
        found.add(pid)
        try:
            text = Path(f"{root}/{pid}/stat").read_text(errors="replace")
            pid = int(text.rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            break
    return found


def users(own: set[int], sessions: str = SESSIONS) -> list[str]:
    """``name on terminal`` of each session of a person, as systemd-logind keeps them; the one that we came by is left
    out."""
    found = []
    for path in sorted(Path(sessions).glob("*")) if Path(sessions).is_dir() else []:
        if path.suffix == ".ref":
            continue
        try:
            lines = path.read_text(errors="replace").splitlines()[:100]
        except OSError:
            continue
        told = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
        leader = told.get("LEADER", "")
        if not told.get("CLASS", "user").startswith("user") or told.get("STATE") == "closing":
            continue
        if leader.isdecimal() and int(leader) in own:
            continue
        place = told.get("TTY") or told.get("REMOTE_HOST") or told.get("SERVICE") or "this machine"
        found.append(f"{told.get('USER', 'somebody')} on {place}"[:200])
    return found


def logind_is_told(pam: str = PAM) -> bool:
    """Whether logins reach systemd-logind at all; a small installation may lack the package that tells it of them."""
    try:
        return "pam_systemd.so" in Path(pam).read_text(errors="replace")
    except OSError:
        return False


def terminals(own: set[int], root: str = "/proc") -> list[str]:
    """``name on terminal`` of each login that leads a session on a terminal; what a multiplexer keeps open is none."""
    found = []
    for entry in sorted(Path(root).iterdir(), key=lambda path: path.name.zfill(10)):
        if not entry.name.isdecimal() or int(entry.name) in own:
            continue
        try:
            comm, fields = _stat(int(entry.name), root)
            session, terminal = int(fields[3]), int(fields[4])
            if str(session) != entry.name or not terminal or comm == "agetty":
                continue
            if any(_MULTIPLEXER.match(_stat(pid, root)[0]) for pid in ancestors(session, root)):
                continue
            owner = entry.stat().st_uid
        except (OSError, ValueError, IndexError):
            continue
        found.append(f"{_name(owner)} on {_terminal(terminal)}"[:200])
    return found


def _stat(pid: int, root: str) -> tuple[str, list[str]]:
    """A process's name, and its fields from the state on (proc_pid_stat(5))."""
    text = Path(f"{root}/{pid}/stat").read_text(errors="replace")
    head, _, tail = text.rpartition(")")
    return head.partition("(")[2], tail.split()


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _terminal(device: int) -> str:
    major, minor = os.major(device), os.minor(device)
    return f"pts/{(major - _PTS) * 256 + minor}" if _PTS <= major < _PTS + 8 else f"tty{minor}"


def recent(unit: str, minutes: int, read: Callable[[list[str], float], str] = rig_witness.run) -> int:
    """Requests of the last minutes, from the unit's journal."""
    if minutes <= 0:
        return 0
    since = f"--since=-{minutes}min"
    text = read(["journalctl", "--no-pager", "-q", "-o", "cat", since, "--lines=20000", f"--unit={unit}"], 30)
    return sum(1 for line in text.splitlines() if _TASK.search(line))


def processing(service: dict[str, Any], pid: int) -> tuple[int | None, str]:
    """Requests that a server answers right now or keeps waiting: its slots, and its own metrics."""
    if not rig_witness.owner(service, pid)["ours"]:
        return None, "the unit does not own its socket"
    key, withheld = rig_talk.first_key(service["key_file"]) if service["key_file"] else ("", "")
    if withheld:
        return None, withheld
    connect = rig_talk.connector(service)
    slots = rig_talk.kept_slots(rig_talk.ask(connect, "/slots", 10, key)).get("json")
    metrics = rig_talk.ask(connect, "/metrics", 10, key)
    values = rig_talk.kept_metrics(metrics, metrics.get("text", "")).get("json", {})
    counts = [values.get(f"llamacpp:requests_{name}") for name in ("processing", "deferred")]
    numbers = [int(count) for count in counts if isinstance(count, float)]
    if isinstance(slots, list):
        numbers.append(sum(1 for slot in slots if slot.get("is_processing") is True))
    if not numbers:
        return None, "it answers neither /slots nor /metrics"
    return max(numbers), ""


def service(given: dict[str, Any], minutes: int) -> dict[str, Any]:
    """One service: whether it runs, what it does now, and how many requests it has had of late."""
    try:
        pid = int(rig_witness.unit_state(given["unit"]).get("MainPID", "0") or 0)
        if not pid:
            return {"running": False, "processing": 0, "recent": 0, "error": ""}
        now, error = processing(given, pid)
        return {"running": True, "processing": now, "recent": recent(given["unit"], minutes), "error": error}
    except (OSError, ValueError) as error:
        return {"running": True, "processing": None, "recent": None, "error": str(error)[:500]}


def look(services: list[dict[str, Any]], minutes: int) -> dict[str, Any]:
    """The whole answer."""
    own = ancestors(os.getpid())
    return {
        "users": users(own) + ([] if logind_is_told() else terminals(own)),
        "services": {given["name"]: service(given, minutes) for given in services},
        "clock": clock(),
    }


def drained(
    services: list[dict[str, Any]], minutes: int, wait_s: float, sleep: Callable[[float], None] = time.sleep
) -> dict[str, Any]:
    """The same as soon as no server answers requests, or after ``wait_s``; ``waited-s`` says how long that took."""
    started = time.monotonic()
    while True:
        found = look(services, minutes)
        waited = time.monotonic() - started
        if waited >= wait_s or not any(each["processing"] for each in found["services"].values()):
            return {**found, "waited-s": round(waited, 1)}
        sleep(min(POLL_S, max(0.0, wait_s - waited)))


def clock(localtime: str = LOCALTIME) -> dict[str, Any]:
    """What time it is here: seconds of the epoch, the zone's offset from UTC now, and its name where that is told."""
    now = time.time()
    try:
        target = str(Path(localtime).readlink())
    except OSError:
        target = ""
    name = target.rpartition("/zoneinfo/")[2] if "/zoneinfo/" in target else ""
    return {"time": now, "utc-offset-s": time.localtime(now).tm_gmtoff, "timezone": name[:100]}
