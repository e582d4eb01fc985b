"""Collect what hosts say of their driver, cards and servers: one run of Ansible, one module that only reads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from llamarig.converge.connection import connection_variables, lend_password
from llamarig.converge.explain import explain
from llamarig.converge.private import private_directory
from llamarig.converge.run import run_playbook
from llamarig.converge.wanted import spec_of
from llamarig.errors import ExitCode, RigError

if TYPE_CHECKING:
    from llamarig.spec.load import LoadedHost

Collected = dict[str, Any] | RigError


def collect_hosts(
    project_root: Path, hosts: list[LoadedHost], *, become_password_file: str | None = None
) -> dict[str, Collected]:
    """Each host's bundle, or the error that kept it from being collected.

    ``become_password_file`` is that of hosts whose spec names none.
    """
    answers: dict[str, Collected] = {}
    with private_directory() as private:
        variables: dict[str, dict[str, Any]] = {}
        for loaded in hosts:
            try:
                variables[loaded.host] = connection_variables(spec_of(loaded), project_root, private)
                lend_password(variables[loaded.host], become_password_file)
            except RigError as error:
                answers[loaded.host] = error
        if variables:
            run = run_playbook("doctor", variables, private)
            for host in variables:
                outcome = run.hosts[host]
                seen = outcome.results.get("rig_doctor", {}).get("collected")
                if isinstance(seen, dict):
                    answers[host] = seen
                elif outcome.failures:
                    answers[host] = explain(host, outcome.failures[-1])
                else:
                    words = run.messages[-4000:]
                    answers[host] = RigError("Ansible ended without an answer", host, words, code=ExitCode.HOST_FAILED)
    return {loaded.host: answers[loaded.host] for loaded in hosts}
