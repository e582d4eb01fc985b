"""Look at hosts: one run of Ansible for all of them, one module, nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llamarig.converge.connection import lend_password
from llamarig.converge.explain import explain
from llamarig.converge.hosts import host_variables
from llamarig.converge.private import private_directory
from llamarig.converge.run import HostVariables, Run, run_playbook
from llamarig.errors import ExitCode, RigError

if TYPE_CHECKING:
    from llamarig.converge.events import Sink
    from llamarig.render.wanted import Wanted
    from llamarig.spec.load import LoadedHost

_NEEDED = "llamarig_wanted"
"""Not sent to a run that only looks."""

Observation = dict[str, Any] | RigError


def observe_hosts(
    project_root: Path,
    hosts: list[LoadedHost],
    wanted: Mapping[str, Wanted],
    *,
    deep: bool = False,
    become_password_file: str | None = None,
) -> dict[str, Observation]:
    """What each host is now, or the error that kept it from saying so.

    ``deep`` hashes releases and models again instead of trusting recorded stat tuples. ``become_password_file`` is
    that of hosts whose spec names none.
    """
    with private_directory() as private:
        variables: dict[str, dict[str, Any]] = {}
        answers: dict[str, Observation] = {}
        for loaded in hosts:
            try:
                variables[loaded.host] = host_variables(project_root, loaded, wanted[loaded.host], private, deep=deep)
                variables[loaded.host].pop(_NEEDED)
                lend_password(variables[loaded.host], become_password_file)
            except RigError as error:
                answers[loaded.host] = error
        if variables:
            answers |= observe_variables(variables, private)
    return {loaded.host: answers[loaded.host] for loaded in hosts}


def observe_variables(variables: HostVariables, private: Path, sink: Sink | None = None) -> dict[str, Observation]:
    """The same for hosts whose Ansible variables are at hand (``llamarig_probe`` and how to reach them)."""
    run = run_playbook("observe", variables, private, sink=sink)
    return {host: _answer(run, host) for host in variables}


def _answer(run: Run, host: str) -> Observation:
    outcome = run.hosts[host]
    seen = outcome.results.get("rig_observe", {}).get("observed")
    if isinstance(seen, dict) and not outcome.failures:
        return seen
    if outcome.failures:
        return explain(host, outcome.failures[-1])
    return RigError(
        what="Ansible ended without an answer", where=host, why=run.messages[-4000:], code=ExitCode.HOST_FAILED
    )
