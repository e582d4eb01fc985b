"""Go back to the former release of a host: link, files and services as its last change found them, and its kernel."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llamarig.compare.kernel_back import KernelBack
from llamarig.compare.view import View
from llamarig.converge.connection import lend_password
from llamarig.converge.events import Sink
from llamarig.converge.explain import explain_all
from llamarig.converge.hosts import host_variables
from llamarig.converge.observe import observe_variables
from llamarig.converge.private import private_directory
from llamarig.converge.run import Run, run_playbook
from llamarig.converge.wanted import wanted_for
from llamarig.converge.way_back import Former, kernel_way, whole_way
from llamarig.errors import ExitCode, RigError

if TYPE_CHECKING:
    from llamarig.render.wanted import Wanted
    from llamarig.spec.load import LoadedHost


@dataclass(frozen=True)
class RolledBack:
    """What became of one host."""

    host: str
    release: str = ""
    """What runs now; empty when the rollback failed."""
    checks: int = 0
    """Checks that the running services passed."""
    kernel: KernelBack | None = None
    """The kernel that was asked for, and why it was not chosen; None where none had to be."""
    chooses: bool = True
    """Whether GRUB decides on that host; elsewhere its owner has to choose the kernel."""
    error: RigError | None = None

    def to_json(self) -> dict[str, Any]:
        """The documented form of ``rollback --json``."""
        error = None
        if self.error is not None:
            error = {"what": self.error.what, "why": self.error.why, "fix": self.error.fix}
        kernel = None
        if self.kernel is not None:
            chosen = self.error is None and self.chooses and not self.kernel.why
            kernel = {**self.kernel.to_json(), "chosen": chosen}
        return {"host": self.host, "release": self.release, "kernel": kernel, "ok": error is None, "error": error}


Way = Former | KernelBack | RigError


@dataclass(frozen=True)
class Options:
    """How to go back."""

    break_lock: bool = False
    kernel_only: bool = False
    become_password_file: str | None = None
    """That of hosts whose spec names none."""


def ways_back(root: Path, hosts: list[LoadedHost], options: Options) -> dict[str, Way]:
    """What each host would go back to, in their order, or why it cannot. Nothing is touched."""
    found: dict[str, Way] = {}
    wanted: dict[str, Wanted] = {}
    variables: dict[str, dict[str, Any]] = {}
    with private_directory() as private:
        for loaded in hosts:
            try:
                wanted[loaded.host] = wanted_for(root, loaded)
                variables[loaded.host] = host_variables(root, loaded, wanted[loaded.host], private)
                variables[loaded.host].pop("llamarig_wanted")
                lend_password(variables[loaded.host], options.become_password_file)
            except RigError as error:
                found[loaded.host] = error
        for host, seen in observe_variables(variables, private).items() if variables else ():
            try:
                if isinstance(seen, RigError):
                    found[host] = seen
                elif options.kernel_only:
                    found[host] = kernel_way(host, View(wanted[host], seen), break_lock=options.break_lock)
                else:
                    found[host] = whole_way(host, View(wanted[host], seen), break_lock=options.break_lock)
            except RigError as error:
                found[host] = error
    return {loaded.host: found[loaded.host] for loaded in hosts}


def rollback_hosts(root: Path, hosts: list[LoadedHost], options: Options, sink: Sink) -> list[RolledBack]:
    """Roll every host back; each is proven against what was wanted when its former release was applied."""
    extra = {"llamarig_break_lock": options.break_lock, "llamarig_kernel_only": options.kernel_only}
    with private_directory() as private:
        variables = {loaded.host: host_variables(root, loaded, wanted_for(root, loaded), private) for loaded in hosts}
        for own in variables.values():
            lend_password(own, options.become_password_file)
        run = run_playbook("rollback", variables, private, sink=sink, extra=extra)
    return [_outcome(run, loaded.host) for loaded in hosts]


def _outcome(run: Run, host: str) -> RolledBack:
    outcome = run.hosts[host]
    if outcome.failures:
        return RolledBack(host, error=explain_all(host, outcome.failures))
    if not outcome.ran:
        why = run.messages[-4000:]
        return RolledBack(host, error=RigError("Ansible ended early", host, why, code=ExitCode.HOST_FAILED))
    checks = outcome.results.get("rig_prove", {}).get("checks", [])
    release = str(outcome.results.get("rig_record", {}).get("record", {}).get("release", ""))
    back = outcome.results.get("rig_reboot", {}).get("back")
    kernel = KernelBack(**back) if isinstance(back, dict) else None
    chooses = outcome.results.get("rig_boot", {}).get("chooses") is not False
    return RolledBack(host, release, len(checks), kernel, chooses)
