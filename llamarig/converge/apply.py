"""Bring hosts to their specs: refuse, look, decide, converge, and say what happened to each."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llamarig.converge.connection import lend_password
from llamarig.converge.decide import Decision, decide
from llamarig.converge.events import Sink
from llamarig.converge.explain import explain_all
from llamarig.converge.hosts import host_variables
from llamarig.converge.observe import observe_variables
from llamarig.converge.private import private_directory
from llamarig.converge.refuse import refusals
from llamarig.converge.run import HostOutcome, Run, run_playbook
from llamarig.converge.store.releases import Releases
from llamarig.converge.wanted import plan_for, wanted_for
from llamarig.errors import ExitCode, RigError, RigErrors

if TYPE_CHECKING:
    from llamarig.spec.load import LoadedHost
    from llamarig.spec.overlay import Overlay


@dataclass(frozen=True)
class Options:
    """How to apply."""

    check: bool = False
    full: bool = False
    deep: bool = False
    verify: bool = False
    break_lock: bool = False
    become_password_file: str | None = None
    overlay: Overlay | None = None
    """What was laid on the specs; a builder that is not among the hosts is loaded with it."""


@dataclass
class HostApply:
    """One host on its way through an apply."""

    host: str
    variables: dict[str, Any] = field(default_factory=dict)
    observed: dict[str, Any] = field(default_factory=dict)
    decision: Decision | None = None
    changed: int = 0
    checks: list[dict[str, Any]] = field(default_factory=list)
    error: RigError | None = None
    refused: list[RigError] = field(default_factory=list)
    """Why this host is not even looked at; ``error`` is the gravest of them then."""
    seconds: float = 0.0
    converged: bool = False
    """Whether roles ran (False: nothing was to be done, or it was a check)."""
    loaded: LoadedHost | None = None
    """Its spec; None where a state that was kept is applied."""

    @property
    def running(self) -> list[str]:
        """Services that run now and would be restarted."""
        if self.decision is None:
            return []
        units = {service["name"]: service["unit"] for service in self.variables["llamarig_wanted"]["services"]}
        seen = self.observed.get("units", {})
        return [
            name
            for name in self.decision.restarts
            if seen.get(units[name], {}).get("active") in {"active", "activating"}
        ]

    @property
    def packages(self) -> int:
        """Packages that would be installed."""
        actions = self.decision.actions if self.decision else ()
        return sum(1 for action in actions if action.kind == "package")

    def to_json(self) -> dict[str, Any]:
        """The documented form of ``apply --json``."""
        return {
            "host": self.host,
            "actions": self.decision.to_json()["actions"] if self.decision else [],
            "changed": self.changed,
            "ok": self.error is None,
            "error": _error_json(self.error) if self.error else None,
            "refused": [_error_json(each) for each in self.refused],
            "checks": self.checks,
            "seconds": round(self.seconds, 2),
        }


def _error_json(error: RigError) -> dict[str, str]:
    return {"what": error.what, "where": error.where, "why": error.why, "fix": error.fix}


def prepare(root: Path, hosts: list[LoadedHost], private: Path, options: Options) -> list[HostApply]:
    """Plan every host and refuse those that must not be applied, before anything is touched.

    A refused host carries its reasons and is left out of all that follows; the others are not held up by it.
    Raises :class:`RigErrors` with all reasons when every host is refused: then there is nothing to go on with.
    """
    prepared = [_prepared(root, loaded, private, options) for loaded in hosts]
    if prepared and all(host.refused for host in prepared):
        raise RigErrors([error for host in prepared for error in host.refused])
    return prepared


def _prepared(root: Path, loaded: LoadedHost, private: Path, options: Options) -> HostApply:
    try:
        plan = plan_for(root, loaded)
        if refused := refusals(loaded, plan, root):
            return _refused(loaded.host, refused)
        variables = host_variables(root, loaded, wanted_for(root, loaded, plan), private, deep=options.deep)
    except RigError as error:
        return _refused(loaded.host, [error])
    lend_password(variables, options.become_password_file)
    return HostApply(loaded.host, variables, loaded=loaded)


def _refused(host: str, errors: list[RigError]) -> HostApply:
    return HostApply(host, error=max(errors, key=lambda error: error.code), refused=errors)


def look(hosts: list[HostApply], private: Path, *, full: bool = False, sink: Sink | None = None) -> None:
    """Observe all hosts at once and decide for each; those that are refused are not looked at. ``sink`` hears of each
    when it answers."""
    started = time.monotonic()
    asked = [host for host in hosts if not host.refused]
    light = {host.host: {k: v for k, v in host.variables.items() if k != "llamarig_wanted"} for host in asked}
    answers = observe_variables(light, private, sink) if light else {}
    for host in asked:
        answer = answers[host.host]
        host.seconds = time.monotonic() - started
        if isinstance(answer, RigError):
            host.error = answer
            continue
        host.observed = answer
        try:
            host.decision = decide(host.variables["llamarig_wanted"], answer, full=full)
        except RigError as error:
            host.error = error


def to_converge(hosts: list[HostApply], options: Options) -> list[HostApply]:
    """The hosts on which something is to be run."""
    walk = options.full or options.verify
    return [host for host in hosts if host.error is None and host.decision and (host.decision.actions or walk)]


def converge(hosts: list[HostApply], private: Path, options: Options, sink: Sink) -> Run:
    """Have releases made that are built elsewhere, run the playbook, and write what happened into each host."""
    started = time.monotonic()
    hosts = _with_releases(hosts, private, options, sink)
    if not hosts:
        return Run(0, {})
    extra = {
        "llamarig_full": options.full,
        "llamarig_verify": options.verify,
        "llamarig_break_lock": options.break_lock,
    }
    run = run_playbook("site", {host.host: host.variables for host in hosts}, private, sink=sink, extra=extra)
    for host in hosts:
        outcome = run.hosts[host.host]
        host.converged = True
        host.changed = outcome.changed
        host.seconds += time.monotonic() - started
        host.checks = outcome.results.get("rig_prove", {}).get("checks", [])
        host.error = _error(host.host, outcome, run)
    return run


def _with_releases(hosts: list[HostApply], private: Path, options: Options, sink: Sink) -> list[HostApply]:
    """The hosts that can go on: those that build elsewhere have their release on the controller, or an error now."""
    from llamarig.converge.build.ensure import make_releases  # noqa: PLC0415 - most runs build nothing elsewhere
    from llamarig.converge.build.play import Given  # noqa: PLC0415 - as the line above

    waiting = [host for host in hosts if _needs_release(host)]
    if not waiting:
        return hosts
    started = time.monotonic()
    loaded = [host.loaded for host in waiting if host.loaded is not None]
    root = Path(waiting[0].variables["llamarig_project"])
    given = Given(options.become_password_file, options.break_lock, options.overlay)
    errors = make_releases(root, loaded, private, sink, given)
    for host in waiting:
        release = host.variables["llamarig_wanted"]["release"]
        held = Releases.default().get(release["id"])
        host.error = errors.get(host.host)
        if held is not None:
            release["artifact"] = {"sha256": held.sha256, "size": held.size}
        if host.error is not None:
            host.seconds += time.monotonic() - started
    return [host for host in hosts if host.error is None]


def _needs_release(host: HostApply) -> bool:
    release = host.variables["llamarig_wanted"]["release"]
    at_work = host.decision is not None and "release" in host.decision.todo
    return at_work and bool(release["elsewhere"]) and not release["artifact"]


def _error(host: str, outcome: HostOutcome, run: Run) -> RigError | None:
    if outcome.failures:
        return explain_all(host, outcome.failures)
    if not outcome.ran or run.status not in {0, 2, 4}:
        return RigError(
            what="Ansible ended before this host was done",
            where=host,
            why=f"{run.messages[-4000:]}\nansible-playbook ended with status {run.status}".strip(),
            code=ExitCode.HOST_FAILED,
        )
    return None


__all__ = ["HostApply", "Options", "converge", "look", "prepare", "private_directory", "to_converge"]
