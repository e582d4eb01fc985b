"""Looking at a machine over SSH with a checked host key, or at this one; read-only."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

from llamarig.converge.connection import connection_variables
from llamarig.converge.explain import explain
from llamarig.converge.private import private_directory
from llamarig.converge.run import run_playbook
from llamarig.errors import ExitCode, RigError
from llamarig.spec.host import Connection, HostSpec

HOST = "new"
"""What the machine is called until its spec names it."""
_SECONDS = 15


def look(root: Path, connection: Connection) -> dict[str, Any]:
    """What the module rig_look saw. Raises :class:`RigError` when the machine cannot be reached or is not trusted."""
    spec = HostSpec.model_construct(host=HOST, connection=connection)
    with private_directory() as private:
        run = run_playbook("look", {HOST: connection_variables(spec, root, private)}, private)
    outcome = run.hosts[HOST]
    seen = outcome.results.get("rig_look", {}).get("looked")
    if isinstance(seen, dict):
        return seen
    where = connection.address or "this machine"
    if not outcome.failures:
        raise RigError("Ansible ended without an answer", where, run.messages[-4000:], code=ExitCode.HOST_FAILED)
    error = replace(explain(where, outcome.failures[-1]), where=where)
    if "host's key is not known" in error.what:
        error = replace(error, fix=_how_to_trust(connection))
    raise error


def _how_to_trust(connection: Connection) -> str:
    """How a user comes to trust a host's key: by comparing it, never by taking what the network offers."""
    port = f"-p {connection.port} " if connection.port != Connection().port else ""
    shown = _fingerprint(connection)
    offered = f"The network offers {shown}. " if shown else ""
    return (
        f"{offered}On the machine's own console run `ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub`; only when "
        f"that shows the same fingerprint, run `ssh {port}{connection.user}@{connection.address}` once and confirm it "
        "(or give the key itself with --host-key)"
    )


def _fingerprint(connection: Connection) -> str:
    """The fingerprint that somebody at that address shows, for a person to compare; empty when nobody answers."""
    scan = ["ssh-keyscan", "-T", "5", "-p", str(connection.port), "-t", "ed25519", "--", str(connection.address)]
    try:
        keys = subprocess.run(scan, capture_output=True, timeout=_SECONDS, check=False)  # noqa: S603 - fixed words, no shell
        shown = subprocess.run(
            ["ssh-keygen", "-lf", "-"],  # noqa: S607 - the user's own OpenSSH
            input=keys.stdout,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    words = shown.stdout.decode("utf-8", "replace").split()
    return f"{words[-1].strip('()')} {words[1]}" if len(words) > 1 and words[1].startswith("SHA256:") else ""
