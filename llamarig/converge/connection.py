"""How Ansible reaches a host: always with a checked host key, never with a question."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llamarig.converge.private import write_private
from llamarig.errors import RigError
from llamarig.spec.controller_path import below

if TYPE_CHECKING:
    from llamarig.spec.host import Connection, HostSpec

SSH_ARGS = "-o ControlMaster=auto -o ControlPersist=60s -o ServerAliveInterval=10 -o ServerAliveCountMax=3"
"""As in ansible.cfg. A host that falls silent is given up after 30 to 40 s, also on a connection kept from before."""

_FIXED: dict[str, Any] = {
    "ansible_host_key_checking": True,
    "ansible_ssh_host_key_checking": True,
    "ansible_ssh_args": SSH_ARGS,
    "ansible_ssh_extra_args": "",
    "ansible_sftp_extra_args": "",
    "ansible_scp_extra_args": "",
    "ansible_ssh_executable": "ssh",
    "ansible_sftp_executable": "sftp",
    "ansible_scp_executable": "scp",
    "ansible_pipelining": True,
    "ansible_ssh_pipelining": True,
}
"""Said for every host, because a host's variable wins over ANSIBLE_SSH_ARGS and its like in the environment."""

_HOST_KEY = re.compile(r"^(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(?:256|384|521)) ([A-Za-z0-9+/]{40,}={0,3})(?: .*)?$")


def _on_controller(root: Path, path: str) -> str:
    return str(below(root, path).absolute())


def _known_hosts_line(host: str, key: str) -> str:
    """A known_hosts line under the alias ``llamarig-<host>``: whatever address the host has, it must show this key."""
    match = _HOST_KEY.match(key)
    if match is None:
        raise RigError(
            what="connection.host-key is not an SSH public key",
            where=host,
            why="expected the type and the base64 text, `ssh-ed25519 AAAA…`",
            fix="copy the line from /etc/ssh/ssh_host_ed25519_key.pub on the host's own console",
        )
    return f"llamarig-{host} {match[1]} {match[2]}\n"


def _ssh_options(spec: HostSpec, private: Path) -> list[str]:
    connection = spec.connection
    options = ["StrictHostKeyChecking=yes", "BatchMode=yes", "UpdateHostKeys=no"]
    if connection.host_key is not None:
        known = private / f"{spec.host}.known_hosts"
        if not known.exists():
            write_private(known, _known_hosts_line(spec.host, connection.host_key))
        options += [
            f"UserKnownHostsFile={known}",
            "GlobalKnownHostsFile=/dev/null",
            f"HostKeyAlias=llamarig-{spec.host}",
        ]
    if connection.identity_file is not None:
        options.append("IdentitiesOnly=yes")
    return options


def _control_path(connection: Connection, address: str, root: Path) -> str:
    """A control socket whose name covers key and identity: another pin never rides on an older connection."""
    facts = [address, str(connection.port), connection.user, connection.host_key or "", connection.identity_file or ""]
    name = hashlib.sha256("\0".join([*facts, str(root)]).encode()).hexdigest()[:16]
    return f"{Path.home()}/.ansible/cp/rig-{name}"


def connection_variables(spec: HostSpec, root: Path, private: Path) -> dict[str, Any]:
    """Ansible's variables for reaching ``spec.host``; ``private`` receives the pinned key.

    Relative paths in the spec start at ``root``. No password is among the
    values: ``llamarig_become_password_file`` names a file that the inventory
    plugin reads into memory.
    """
    connection = spec.connection
    variables: dict[str, Any] = {"ansible_python_interpreter": "/usr/bin/python3"}
    if connection.become:
        variables.update(ansible_become=True, ansible_become_method="sudo", ansible_become_user="root")
        if connection.become_password_file is not None:
            variables["llamarig_become_password_file"] = _on_controller(root, connection.become_password_file)
    if connection.type == "local":
        return {**variables, "ansible_connection": "local"}
    address = connection.address or spec.host
    if address.startswith("-"):
        raise RigError(
            what="connection.address begins with a dash", where=spec.host, fix="name the host or its address"
        )
    variables.update(_FIXED)
    variables.update(
        ansible_connection="ssh",
        ansible_host=address,
        ansible_port=connection.port,
        ansible_user=connection.user,
        ansible_control_path=_control_path(connection, address, root),
        ansible_ssh_common_args=" ".join(f"-o {_quoted(option)}" for option in _ssh_options(spec, private)),
    )
    if connection.identity_file is not None:
        variables["ansible_ssh_private_key_file"] = _on_controller(root, connection.identity_file)
    return variables


def lend_password(variables: dict[str, Any], password_file: str | None) -> None:
    """Have a host whose spec names no file of its own use the password that was asked for.

    ``password_file`` holds that password; None where none was asked for. A host without sudo needs none.
    """
    if password_file is not None and variables.get("ansible_become"):
        variables.setdefault("llamarig_become_password_file", password_file)


def _quoted(option: str) -> str:
    """Ansible splits the arguments as a shell would, and ssh splits an option's value once more."""
    name, value = option.split("=", 1)
    return f"'{name}=\"{value}\"'" if " " in value else f"{name}={value}"


def read_password(path: str) -> str:
    """The first line of a password file that only its owner can read.

    Raises :class:`RigError` when it cannot be read, is open to others, or is empty.
    """
    try:
        status = Path(path).stat()
        text = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise RigError(what="the become password file cannot be read", where=path, why=str(error)) from error
    if status.st_mode & 0o077 or status.st_uid not in {os.getuid(), 0}:
        raise RigError(
            what="the become password file is open to others",
            where=path,
            fix=f"chown it to yourself, chmod 0600 {path}",
        )
    if not text or not text[0]:
        raise RigError(what="the become password file is empty", where=path)
    return text[0]
