"""The container engine: the one that answers, or one that the lab starts itself and can stop again."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import docker
from docker.errors import DockerException

from lab.packages import LabError, cache_dir, ensure_commands

_START_SECONDS = 60.0


def _state_file() -> Path:
    return cache_dir() / "lab" / "engine.json"


@dataclass
class Engine:
    """A client to the engine, and whether this process started the daemon."""

    client: docker.DockerClient
    started: bool


def _answering() -> docker.DockerClient | None:
    try:
        client = docker.from_env(timeout=600)
        client.ping()
    except (DockerException, OSError):
        return None
    return client


def ensure_engine() -> Engine:
    """The engine that answers; where none does, docker.io is installed if absent and dockerd started."""
    client = _answering()
    if client is not None:
        return Engine(client, started=False)
    ensure_commands({"dockerd": "docker.io", "iptables": "iptables"})
    client = _answering()
    if client is not None:
        return Engine(client, started=False)
    return Engine(_start_daemon(), started=True)


def _start_daemon() -> docker.DockerClient:
    state = _state_file()
    state.parent.mkdir(parents=True, exist_ok=True)
    log = state.with_name("dockerd.log")
    program = shutil.which("dockerd", path=os.environ.get("PATH", "") + ":/usr/sbin")
    if program is None:
        raise LabError("docker.io was installed, yet there is no dockerd")
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [program], stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.STDOUT, start_new_session=True
        )
    state.write_text(json.dumps({"pid": process.pid, "start": _start_time(process.pid)}))
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        client = _answering()
        if client is not None:
            return client
        if process.poll() is not None:
            break
        time.sleep(0.3)
    tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
    raise LabError(f"dockerd did not come up; its last lines ({log}):\n{tail}")


def _start_time(pid: int) -> str | None:
    """The kernel's start time of a process: with the id it names a process for good."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19]
    except (OSError, IndexError):
        return None


def stop_engine() -> bool:
    """Stop the daemon that the lab started, if it still runs; never one that others started."""
    state = _state_file()
    try:
        kept = json.loads(state.read_text())
    except (OSError, ValueError):
        return False
    state.unlink(missing_ok=True)
    pid = int(kept["pid"])
    if kept["start"] is None or _start_time(pid) != kept["start"]:
        return False
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and _start_time(pid) == kept["start"]:
        if _is_zombie(pid):
            break
        time.sleep(0.2)
    return True


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True
