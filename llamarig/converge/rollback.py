"""Go back to the former release of a host: link, files and services as its last change found them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llamarig.converge.events import Sink
from llamarig.converge.explain import explain_all
from llamarig.converge.hosts import host_variables
from llamarig.converge.observe import observe_variables
from llamarig.converge.private import private_directory
from llamarig.converge.run import Run, run_playbook
from llamarig.converge.wanted import wanted_for
from llamarig.converge.way_back import Former, way_back
from llamarig.errors import ExitCode, RigError

if TYPE_CHECKING:
    from llamarig.spec.load import LoadedHost


@dataclass(frozen=True)
class RolledBack:
    """What became of one host."""

    host: str
    release: str = ""
    """What runs now; empty when the rollback failed."""
    checks: int = 0
    """Checks that the running services passed."""
    error: RigError | None = None

    def to_json(self) -> dict[str, Any]:
        """The documented form of ``rollback --json``."""
        error = None
        if self.error is not None:
            error = {"what": self.error.what, "why": self.error.why, "fix": self.error.fix}
        return {"host": self.host, "release": self.release, "ok": self.error is None, "error": error}


def ways_back(root: Path, hosts: list[LoadedHost], *, break_lock: bool = False) -> dict[str, Former | RigError]:
    """What each host would go back to, or why it cannot. Nothing is touched."""
    found: dict[str, Former | RigError] = {}
    with private_directory() as private:
        variables = {loaded.host: host_variables(root, loaded, wanted_for(root, loaded), private) for loaded in hosts}
        for given in variables.values():
            given.pop("llamarig_wanted")
        for host, seen in observe_variables(variables, private).items():
            try:
                found[host] = seen if isinstance(seen, RigError) else way_back(host, seen, break_lock=break_lock)
            except RigError as error:
                found[host] = error
    return found


def rollback_hosts(root: Path, hosts: list[LoadedHost], sink: Sink, *, break_lock: bool = False) -> list[RolledBack]:
    """Roll every host back; each is proven against what was wanted when its former release was applied."""
    with private_directory() as private:
        variables = {loaded.host: host_variables(root, loaded, wanted_for(root, loaded), private) for loaded in hosts}
        run = run_playbook("rollback", variables, private, sink=sink, extra={"llamarig_break_lock": break_lock})
    return [_outcome(run, loaded.host) for loaded in hosts]


def _outcome(run: Run, host: str) -> RolledBack:
    outcome = run.hosts[host]
    if outcome.failures:
        return RolledBack(host, error=explain_all(host, outcome.failures))
    if not outcome.ran:
        why = run.messages[-4000:]
        return RolledBack(host, error=RigError("Ansible ended early", host, why, code=ExitCode.HOST_FAILED))
    checks = outcome.results.get("rig_prove", {}).get("checks", [])
    return RolledBack(
        host, str(outcome.results.get("rig_record", {}).get("record", {}).get("release", "")), len(checks)
    )
