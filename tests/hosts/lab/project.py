"""A llamarig project for machines of the lab, and the command run on it as a user runs it.

The only file of the lab that knows what the machines are for.
"""

from __future__ import annotations

import contextlib
import copy
import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml

from lab import faults
from lab.host import Described, Host
from lab.packages import LabError
from lab.ssh import free_port

ROOT = Path(__file__).resolve().parents[3]
"""The checkout."""
KEY_FILE = "/etc/llamarig/keys/chat.keys"
PORT = 8080


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    command: str
    code: int
    stdout: str
    stderr: str
    seconds: float

    @property
    def data(self) -> Any:
        """What ``--json`` printed; :class:`LabError` with everything it said when that is no JSON."""
        try:
            return json.loads(self.stdout)
        except ValueError as error:
            raise LabError(f"`{self.command}` printed no JSON:\n{self.stdout}\n{self.stderr}") from error

    def ok(self) -> Ran:
        """The same, when it ended with 0; otherwise :class:`LabError` with everything it said."""
        return self.ended(0)

    def ended(self, code: int) -> Ran:
        """The same, when it ended with ``code``; otherwise :class:`LabError` with everything it said."""
        if self.code != code:
            raise LabError(
                f"`{self.command}` ended with {self.code}, not {code}, after {self.seconds:.1f} s\n"
                f"--- stdout\n{self.stdout}\n--- stderr\n{self.stderr}"
            )
        return self


def demo_spec() -> dict[str, Any]:
    """The demo's spec as plain data."""
    spec: dict[str, Any] = yaml.safe_load((ROOT / "inventory" / "demo.yml").read_text())
    return spec


class Project:
    """A directory with specs, and llamarig run on it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.inventory = directory / "inventory"
        self.inventory.mkdir(parents=True, exist_ok=True)
        for extra in ("headers", "patches"):
            if (ROOT / extra).is_dir():
                shutil.copytree(ROOT / extra, directory / extra, dirs_exist_ok=True)

    def describe(self, host: Described, spec: dict[str, Any] | None = None) -> dict[str, Any]:
        """Write the spec of a machine (the demo's when none is given) with how to reach it; returns it."""
        written = copy.deepcopy(demo_spec() if spec is None else spec)
        written["host"] = host.name
        written["connection"] = host.connection()
        (self.inventory / f"{host.name}.yml").write_text(yaml.safe_dump(written, sort_keys=False))
        return written

    def command(self, *arguments: str) -> list[str]:
        """The command line that runs this checkout's llamarig on this project."""
        return [sys.executable, "-m", "llamarig.cli.main", "-C", str(self.directory), *arguments]

    def environment(self) -> dict[str, str]:
        """The environment in which the checkout and its tools are found."""
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
        return dict(os.environ, PYTHONPATH=str(ROOT), PATH=path)

    def rig(self, *arguments: str, seconds: float = 2400.0) -> Ran:
        """Run a llamarig command to its end, without a terminal."""
        shown = shlex.join(["llamarig", *arguments])
        return _run(shown, self.command(*arguments), self.directory, self.environment(), seconds)

    def ansible(self, *arguments: str, seconds: float = 2400.0, **variables: str) -> Ran:
        """Run ansible-playbook in the checkout as a user of plain Ansible would; ``variables`` of the environment."""
        command = ["ansible-playbook", *arguments]
        environment = dict(self.environment(), ANSIBLE_NOCOLOR="1", LC_ALL=os.environ.get("LC_ALL", "C.UTF-8"))
        return _run(shlex.join(command), command, ROOT, environment | variables, seconds)

    def play(self, host: Described, playbook: str, *options: str, seconds: float = 2400.0) -> Ran:
        """The same for one playbook of the checkout, on one host of this project."""
        inventory = ("-i", str(self.inventory), "--limit", host.name)
        return self.ansible(*inventory, *options, playbook, seconds=seconds)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a llamarig command in a session of its own, to be interrupted or waited for."""
        return subprocess.Popen(
            self.command(*arguments),
            env=self.environment(),
            cwd=self.directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )


def _run(shown: str, command: list[str], directory: Path, environment: dict[str, str], seconds: float) -> Ran:
    start = time.monotonic()
    done = subprocess.run(
        command,
        env=environment,
        cwd=directory,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=seconds,
        check=False,
    )
    return Ran(shown, done.returncode, done.stdout, done.stderr, time.monotonic() - start)


def api_key(host: Host, path: str = KEY_FILE) -> str:
    """A key that the server accepts, read from the host as its root."""
    lines = [line.strip() for line in host.ssh(f"cat {path}").splitlines()]
    keys = [line for line in lines if line and not line.startswith("#")]
    if not keys:
        raise LabError(f"{path} on {host.name} holds no key")
    return keys[0]


@contextlib.contextmanager
def tunnel(host: Host, port: int = PORT) -> Iterator[str]:
    """The base URL of a server that listens on the host's loopback, through SSH."""
    local = free_port()
    forward = ("-N", "-o", "ExitOnForwardFailure=yes", "-L", f"127.0.0.1:{local}:127.0.0.1:{port}")
    process = subprocess.Popen(host.ssh_command(*forward), stdin=subprocess.DEVNULL)
    try:
        faults.wait_for("the SSH tunnel", lambda: _listens(local), 20)
        yield f"http://127.0.0.1:{local}"
    finally:
        process.terminate()
        process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def chat(host: Host, question: str, *, port: int = PORT, tokens: int = 64) -> str:
    """The answer to one chat request that carries the key."""
    with tunnel(host, port) as url:
        reply = httpx.post(
            f"{url}/v1/chat/completions",
            headers={"Authorization": f"Bearer {api_key(host)}"},
            json={"messages": [{"role": "user", "content": question}], "max_tokens": tokens},
            timeout=120,
        )
    reply.raise_for_status()
    answer: str = reply.json()["choices"][0]["message"]["content"]
    return answer.strip()
