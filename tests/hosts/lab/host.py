"""One machine of the lab: its address, its keys, and ways to reach into it."""

from __future__ import annotations

import io
import shlex
import subprocess
import tarfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from docker.models.containers import Container

from lab.packages import LabError

BOOT_SECONDS = 90.0


@dataclass(frozen=True)
class Done:
    """How a command inside the machine ended."""

    code: int
    output: str


class Described(Protocol):
    """A machine for which a spec can be written."""

    name: str

    def connection(self) -> dict[str, Any]:
        """The ``connection`` of a spec that reaches it."""


class Remote:
    """A machine that one gets into over SSH, strictly, as root."""

    def __init__(self, name: str, ssh_config: Path) -> None:
        self.name = name
        self.ssh_config = ssh_config

    def ssh_command(self, *options: str) -> list[str]:
        """``ssh`` with all that is needed to log in; the remote command comes after it."""
        return ["ssh", "-F", str(self.ssh_config), *options, self.name]

    def ssh(self, command: str, *, check: bool = True, seconds: float = 120.0) -> str:
        """Run a shell command over SSH and return what it printed.

        Raises :class:`LabError` when it ends with another status than 0, unless ``check`` is off.
        """
        done = subprocess.run(
            [*self.ssh_command(), command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
        if check and done.returncode != 0:
            raise LabError(f"{self.name}: `{command}` ended with {done.returncode}: {done.stderr.strip()[-2000:]}")
        return done.stdout


class Host(Remote):
    """A running Debian 13 machine in a container, with systemd and sshd."""

    def __init__(self, name: str, container: Container, address: str, host_key: str, state: Path) -> None:
        super().__init__(name, state / "ssh_config")
        self.container = container
        self.address = address
        self.host_key = host_key
        self.identity_file = state / "id_ed25519"
        self.known_hosts = state / "known_hosts"

    def connection(self) -> dict[str, Any]:
        """The ``connection`` of a spec that reaches this machine."""
        return {
            "address": self.address,
            "host-key": self.host_key,
            "identity-file": str(self.identity_file),
        }

    def exec(self, command: str | list[str], *, check: bool = True) -> Done:
        """Run a command through the container engine: works without network and sshd."""
        argv = ["sh", "-c", command] if isinstance(command, str) else command
        code, output = self.container.exec_run(argv)
        text = output.decode(errors="replace") if isinstance(output, bytes) else ""
        if check and code != 0:
            raise LabError(f"{self.name}: `{shlex.join(argv)}` ended with {code}: {text.strip()[-2000:]}")
        return Done(int(code or 0), text)

    def write(self, path: str, content: bytes, *, mode: int = 0o644) -> None:
        """Put a file of root's into the machine, past everything that runs there."""
        put_file(self.container, path, content, mode)

    def wait_booted(self) -> None:
        """Until systemd says ``running`` and sshd lets root in."""
        deadline = time.monotonic() + BOOT_SECONDS
        state = ""
        while time.monotonic() < deadline:
            state = self.exec("systemctl is-system-running 2>&1", check=False).output.strip()
            if state == "running" and self.exec("systemctl is-active ssh.service", check=False).code == 0:
                self.ssh("true")
                return
            if state == "degraded":
                break
            time.sleep(0.3)
        failed = self.exec("systemctl --failed --no-legend --plain; journalctl -n 20 --no-pager", check=False).output
        raise LabError(f"{self.name}: systemd says {state!r} after the start:\n{failed}")


def put_file(container: Container, path: str, content: bytes, mode: int) -> None:
    """Write one file of root's into a container, running or not; its directory is made when absent."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        info = tarfile.TarInfo(path.lstrip("/"))
        info.size = len(content)
        info.mode = mode
        info.mtime = int(time.time())
        archive.addfile(info, io.BytesIO(content))
    if not container.put_archive("/", buffer.getvalue()):
        raise LabError(f"the engine refused to write {path}")
