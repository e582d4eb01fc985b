"""Prove running hosts: one run of Ansible for all of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from llamarig.converge.connection import lend_password
from llamarig.converge.explain import explain
from llamarig.converge.hosts import host_variables
from llamarig.converge.private import private_directory
from llamarig.converge.run import Run, run_playbook
from llamarig.converge.wanted import spec_of, wanted_for
from llamarig.errors import ExitCode, RigError
from llamarig.prove.check import Check

if TYPE_CHECKING:
    from llamarig.spec.load import LoadedHost

Proof = list[Check] | RigError
"""The checks of a host, or the error that kept them from being made."""


def prove_hosts(
    project_root: Path,
    hosts: list[LoadedHost],
    *,
    deep: bool = False,
    memory: bool = False,
    become_password_file: str | None = None,
) -> dict[str, Proof]:
    """Observe and probe the hosts and judge each against its spec.

    ``deep`` hashes releases and models again instead of trusting recorded stat tuples. ``memory`` holds the planned
    memory against the running processes too, and stores what it measured in the project. ``become_password_file`` is
    that of hosts whose spec names none.
    """
    proofs: dict[str, Proof] = {}
    with private_directory() as private:
        variables: dict[str, dict[str, Any]] = {}
        for loaded in hosts:
            try:
                wanted = wanted_for(project_root, loaded)
                variables[loaded.host] = {
                    **host_variables(project_root, loaded, wanted, private, deep=deep),
                    "llamarig_memory": memory,
                }
                lend_password(variables[loaded.host], become_password_file)
            except RigError as error:
                proofs[loaded.host] = error
        if variables:
            run = run_playbook("verify", variables, private)
            proofs |= {host: read_proof(run, host) for host in variables}
            if memory:
                proofs |= {
                    loaded.host: _with_memory(project_root, loaded, run, proofs[loaded.host])
                    for loaded in hosts
                    if loaded.host in variables
                }
    return {loaded.host: proofs[loaded.host] for loaded in hosts}


def _with_memory(project_root: Path, loaded: LoadedHost, run: Run, proof: Proof) -> Proof:
    """The proof of a host with what its memory shows; nothing is stored of a host whose proof failed."""
    from llamarig.prove.measure import measure  # noqa: PLC0415 - planning is heavy, a plain verify does without

    answer = run.hosts[loaded.host].results.get("rig_prove", {}).get("measured")
    if isinstance(proof, RigError) or not isinstance(answer, dict):
        return proof
    proven = all(check.ok for check in proof)
    try:
        return [*proof, *measure(project_root, spec_of(loaded), answer, store=proven)]
    except RigError as error:
        return error


def read_proof(run: Run, host: str) -> Proof:
    """The checks that a finished run made on ``host``; red checks are checks, not a failed host."""
    outcome = run.hosts[host]
    checks = outcome.results.get("rig_prove", {}).get("checks")
    if isinstance(checks, list) and checks:
        return [Check(each["name"], each["ok"], each["detail"], each["blocked-by"]) for each in checks]
    if outcome.failures:
        return explain(host, outcome.failures[-1])
    return RigError("Ansible ended without an answer", host, run.messages[-4000:], code=ExitCode.HOST_FAILED)
