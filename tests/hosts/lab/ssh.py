"""Keys, and an ssh configuration that knows every machine of a lab by its pinned key."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path


class KeyPair:
    """An ed25519 pair; made when it is not there."""

    def __init__(self, private: Path, comment: str = "llamarig-lab") -> None:
        self.private = private
        self.public = private.with_suffix(".pub")
        if not private.exists():
            command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(private)]
            subprocess.run(command, check=True, stdin=subprocess.DEVNULL)

    def public_text(self) -> str:
        """The public key without its comment: ``ssh-ed25519 AAAA…``."""
        return " ".join(self.public.read_text().split()[:2])


def write_ssh_config(  # noqa: PLR0913 - each is one line of the file
    state: Path, name: str, address: str, identity: Path, host_key: str, *, port: int = 22
) -> Path:
    """Add a machine to ``state``'s known_hosts and ssh_config; returns the latter.

    A machine that was there under this name or address is replaced.
    """
    known_hosts = state / "known_hosts"
    lines = known_hosts.read_text().splitlines() if known_hosts.exists() else []
    kept = [line for line in lines if line.split()[0] not in {name, address}]
    known_hosts.write_text("\n".join([*kept, f"{address} {host_key}", f"{name} {host_key}"]) + "\n")
    blocks = state / "ssh_config.d"
    blocks.mkdir(exist_ok=True)
    (blocks / name).write_text(
        f"Host {name} {address}\n"
        f"  HostName {address}\n"
        f"  HostKeyAlias {name}\n"
        f"  Port {port}\n"
        "  User root\n"
        f"  IdentityFile {identity}\n"
        "  IdentitiesOnly yes\n"
        f"  UserKnownHostsFile {known_hosts}\n"
        "  StrictHostKeyChecking yes\n"
        "  BatchMode yes\n"
        "  ConnectTimeout 10\n"
    )
    config = state / "ssh_config"
    config.write_text("".join(block.read_text() for block in sorted(blocks.iterdir())))
    return config


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
