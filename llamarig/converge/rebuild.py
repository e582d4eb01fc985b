"""After an update: what changed, apply, reboot where that is needed, allowed and safe, and apply the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llamarig.compare.driver import REBOOT
from llamarig.compare.load import wanted_from_json
from llamarig.compare.redo import Change, changes
from llamarig.compare.view import view_of
from llamarig.converge import apply as work
from llamarig.converge.explain import explain_all
from llamarig.converge.run import HostOutcome, Run, run_playbook
from llamarig.errors import ExitCode, RigError

if TYPE_CHECKING:
    from llamarig.converge.events import Sink
    from llamarig.spec.load import LoadedHost


@dataclass
class Rebuilt:
    """One host on its way through a rebuild."""

    apply: work.HostApply
    changes: list[Change] = field(default_factory=list)
    reboot: dict[str, Any] | None = None
    """The last decision (:mod:`llamarig.compare.reboot`)."""
    rebooted: bool = False

    @property
    def host(self) -> str:
        """Its name."""
        return self.apply.host

    @property
    def error(self) -> RigError | None:
        """What has gone wrong."""
        return self.apply.error

    def to_json(self) -> dict[str, Any]:
        """The documented form of ``rebuild --json``."""
        told = self.apply.to_json()
        return {
            **told,
            "changes": [change.to_json() for change in self.changes],
            "reboot": self.reboot,
            "rebooted": self.rebooted,
        }


def table(host: work.HostApply) -> list[Change]:
    """What changed on a host that was looked at."""
    if host.error is not None or host.decision is None:
        return []
    wanted = wanted_from_json(host.decision.learned or host.variables["llamarig_wanted"])
    return changes(view_of(wanted, host.observed), host.decision.actions)


def prepare(
    root: Path,
    hosts: list[LoadedHost],
    private: Path,
    options: work.Options,
    refused: Callable[[list[work.HostApply]], None],
) -> list[Rebuilt]:
    """Plan, refuse, look, and tell what changed. ``refused`` gets all hosts before they are looked at, to say which are
    refused. Nothing is touched."""
    prepared = work.prepare(root, hosts, private, options)
    refused(prepared)
    work.look(prepared, private)
    return [Rebuilt(host, table(host)) for host in prepared]


def waits_for_reboot(host: work.HostApply) -> str:
    """Why a reboot is all that the driver still lacks; empty where it lacks more, or nothing. Looked at after an apply,
    which ends there."""
    left = [action for action in host.decision.actions if action.kind == "driver"] if host.decision else []
    return left[0].reason if left and all(action.subject == REBOOT for action in left) else ""


def converge(hosts: list[Rebuilt], private: Path, options: work.Options, sink: Sink) -> None:
    """Apply. An apply that ends because only a reboot is missing is no failure here."""
    todo = work.to_converge([host.apply for host in hosts], options)
    if not todo:
        return
    work.converge(todo, private, options, sink)
    for host in todo:
        said = host.error
        if said is None:
            continue
        host.error = None
        work.look([host], private)
        if host.error is not None or not waits_for_reboot(host):
            host.error = said


def decide(hosts: list[Rebuilt], private: Path) -> Run:
    """Ask every host whether it has to reboot, and whether it may. Nothing is touched."""
    asked = [host for host in hosts if host.error is None]
    if not asked:
        return Run(0, {})
    run = _play(asked, private, {"llamarig_reboot_look": True}, None)
    _take(asked, run)
    return run


def reboot(hosts: list[Rebuilt], private: Path, options: work.Options, sink: Sink, *, allowed: bool) -> Run:
    """Reboot those that may, and judge what came up."""
    extra = {"llamarig_reboot_allowed": allowed, "llamarig_break_lock": options.break_lock}
    run = _play(hosts, private, extra, sink)
    _take(hosts, run)
    for host in hosts:
        host.rebooted = host.error is None and "differs" in run.hosts[host.host].results.get("rig_reboot", {})
    return run


def _play(hosts: list[Rebuilt], private: Path, extra: dict[str, Any], sink: Sink | None) -> Run:
    variables = {host.host: host.apply.variables for host in hosts}
    return run_playbook("rebuild", variables, private, sink=sink, extra=extra)


def _take(hosts: list[Rebuilt], run: Run) -> None:
    for host in hosts:
        outcome: HostOutcome = run.hosts[host.host]
        decided = outcome.results.get("rig_reboot", {}).get("reboot")
        host.reboot = decided if isinstance(decided, dict) else host.reboot
        if outcome.failures:
            host.apply.error = explain_all(host.host, outcome.failures)
        elif not outcome.ran:
            host.apply.error = RigError(
                "Ansible ended early", host.host, run.messages[-4000:], code=ExitCode.HOST_FAILED
            )


__all__ = ["Rebuilt", "converge", "decide", "prepare", "reboot", "table", "waits_for_reboot"]
