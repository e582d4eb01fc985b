"""A long job on a machine without systemd: a process that outlives the connection that started it.

It leaves three files in the job's directory: ``pid`` (process, its start time, what the job is), ``log``, and ``rc``
(exit status and a word of systemd's for how it ended) once it has ended. A container that is made for a build is such
a machine; that it has no network and few rights is the container's doing. Of a unit's properties only those count
that say who runs the job, where, and for how long; a ``BindPaths=A:B`` becomes a link at B that leads to A.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from ansible.module_utils.rig_disk import open_plain, write_whole

SYSTEMD = Path("/run/systemd/system")
INTERFACES = Path("/sys/class/net")
_ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
"""What systemd gives a unit. A compiler cache tells languages apart: with another one it would know nothing."""
_STARTED_WORD = "started"
_GRACE_S = 10.0
_STATE, _STARTED = 0, 19
"""Fields of /proc/PID/stat behind the name."""


def started_at(pid: int) -> str:
    """The start time of a process, which with its number names it for good; empty when it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[_STATE] in "ZX" else fields[_STARTED]


def _words(path: Path) -> list[str]:
    try:
        with os.fdopen(open_plain(path), "rb") as file:
            return file.read(4096).decode(errors="replace").split()
    except OSError:
        return []


def shown(directory: Path) -> dict[str, str]:
    """How the job is, in the words of ``systemctl show``."""
    ended, noted = _words(directory / "rc"), _words(directory / "pid")
    answer = {"LoadState": "loaded" if noted else "not-found", "Description": " ".join(noted[2:])}
    if ended:
        code, result = ended[0], ended[1]
        exited = "1" if result in ("success", "exit-code") else "2"
        # As a unit that remains after it has ended well: the same job is not done again before it is collected.
        state = {"ActiveState": "active" if result == "success" else "failed", "SubState": "exited", "Result": result}
        return {**answer, **state, "ExecMainStatus": code, "ExecMainCode": exited}
    if noted and noted[1] == started_at(int(noted[0])):
        return {**answer, "ActiveState": "active", "SubState": "running"}
    lost = {"ActiveState": "failed", "SubState": "failed", "Result": "signal", "ExecMainStatus": "9"}
    return {**answer, **lost, "ExecMainCode": "2"} if noted else answer


def clear(directory: Path) -> None:
    """End the job whatever it does, and forget it; its log stays."""
    noted = _words(directory / "pid")
    # What a dead watcher leaves keeps its session, whose number nobody else gets as long as there is one of them.
    if noted and started_at(int(noted[0])) in ("", noted[1]):
        _end(int(noted[0]))
    for name in ("rc", "pid"):
        (directory / name).unlink(missing_ok=True)


def _end(leader: int) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        members = _session(leader)
        for pid in members:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        deadline = time.monotonic() + _GRACE_S
        while _session(leader) and time.monotonic() < deadline:
            time.sleep(0.1)
        if not _session(leader):
            return


def _session(leader: int) -> list[int]:
    """The living processes of a session; what the job starts stays in it."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and started_at(int(entry.name)):
            with contextlib.suppress(OSError):
                if os.getsid(int(entry.name)) == leader:
                    found.append(int(entry.name))
    return found


def _properties(entries: list[str]) -> dict[str, str]:
    return dict(entry.split("=", 1) for entry in entries if "=" in entry)


def _link(entries: list[str]) -> None:
    for entry in entries:
        key, _, value = entry.partition("=")
        source, _, target = value.partition(":")
        if key in ("BindPaths", "BindReadOnlyPaths") and target and source != target:
            place = Path(target)
            place.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            if place.is_symlink():
                place.unlink()
            place.symlink_to(source)


def start(directory: Path, description: str, environment: dict[str, str], properties: list[str]) -> None:
    """Start ``run.sh`` of the directory in a session of its own, and come back at once.

    Raises OSError when that fails or the job asks for no network and there is one, KeyError for an unknown user.
    """
    wanted = _properties(properties)
    account = pwd.getpwnam(wanted["User"]) if "User" in wanted else None
    if wanted.get("PrivateNetwork") == "yes" and (others := networks()):
        raise OSError(f"it must run without a network, and nothing takes it away here: there is {', '.join(others)}")
    _link(properties)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    log = os.open(directory / "log", flags, 0o644)
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.close(reading)
        _stay(directory, description, writing, _Job(log, environment, wanted, account))
    os.close(writing)
    os.close(log)
    with os.fdopen(reading, "rb") as answer:
        said = answer.read().decode(errors="replace")
    if said != _STARTED_WORD:
        raise OSError(said or "the process that runs it ended at once")


def networks() -> list[str]:
    """The network interfaces beside the loopback."""
    return sorted({path.name for path in INTERFACES.iterdir()} - {"lo"}) if INTERFACES.is_dir() else ["unknown"]


@dataclass(frozen=True)
class _Job:
    log: int
    environment: dict[str, str]
    properties: dict[str, str]
    account: pwd.struct_passwd | None


def _stay(directory: Path, description: str, writing: int, job: _Job) -> NoReturn:
    """In the child: become a session that nobody waits for, tell its number, and watch over the job to its end."""
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(nothing, number)
        process = _begin(directory, job)
        # A whole line: a shell reads it, too.
        note = f"{os.getpid()} {started_at(os.getpid())} {description}\n"
        write_whole(directory / "pid", note.encode())
        os.write(writing, _STARTED_WORD.encode())
        os.close(writing)
        _watch(directory, process, job.properties.get("RuntimeMaxSec", ""))
    except BaseException as error:  # whatever it was, whoever asks has to hear it
        with contextlib.suppress(OSError):
            os.write(writing, str(error).encode())
        os._exit(1)
    os._exit(0)


def _begin(directory: Path, job: _Job) -> subprocess.Popen[bytes]:
    wanted, account = job.properties, job.account
    who: dict[str, Any] = {}
    if account is not None and account.pw_uid != os.geteuid():
        who = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    # Before there is a process of another user, whose priority only a right would change.
    os.nice(int(wanted.get("Nice", "0")))
    return subprocess.Popen(  # noqa: S603 - no shell, our own script
        ["/bin/sh", str(directory / "run.sh")],
        stdin=subprocess.DEVNULL,
        stdout=job.log,
        stderr=job.log,
        cwd=wanted.get("WorkingDirectory", "/"),
        env={**_ENVIRONMENT, **job.environment},
        umask=int(wanted.get("UMask", "0022"), 8),
        **who,
    )


def _watch(directory: Path, process: subprocess.Popen[bytes], limit_s: str) -> None:
    try:
        code = process.wait(float(limit_s) if limit_s else None)
        result = "success" if code == 0 else "exit-code" if code > 0 else "signal"
    except subprocess.TimeoutExpired:
        code, result = -signal.SIGKILL, "timeout"
        for pid in _session(os.getpid()):
            if pid != os.getpid():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
    write_whole(directory / "rc", f"{abs(code)} {result}\n".encode())


def has_systemd() -> bool:
    """Whether systemd runs this machine."""
    return SYSTEMD.is_dir()
