"""Fetch the release that a host has built by itself, for others that want the same."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from llamarig.converge.events import Sink
from llamarig.converge.explain import explain_all
from llamarig.converge.run import run_playbook
from llamarig.converge.store.releases import Held, Releases
from llamarig.errors import ExitCode, RigError

if TYPE_CHECKING:
    from llamarig.converge.apply import HostApply


def collect(host: HostApply, private: Path, sink: Sink) -> Held:
    """The release of a converged host on the controller: packed there, fetched, and kept by its id.

    ``private`` is a directory of this call's own. Nothing is fetched when the controller holds it already. Raises
    :class:`RigError` when the host does not have it whole, or hands over something else.
    """
    release = str(host.variables["llamarig_wanted"]["release"]["id"])
    held = Releases.default().get(release)
    if held is not None:
        return held
    run = run_playbook("collect", {host.host: host.variables}, private, sink=sink)
    outcome = run.hosts[host.host]
    if outcome.failures:
        raise explain_all(host.host, outcome.failures)
    held = Releases.default().get(release)
    if held is None:
        words = run.messages[-4000:]
        raise RigError("Ansible ended without the release", host.host, words, code=ExitCode.HOST_FAILED)
    return held
