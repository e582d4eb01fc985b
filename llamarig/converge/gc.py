"""Free disk space on hosts: look and decide, and, when somebody has agreed, remove and prove."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llamarig.converge.connection import lend_password
from llamarig.converge.explain import explain_all
from llamarig.converge.hosts import host_variables
from llamarig.converge.run import Run, run_playbook
from llamarig.converge.wanted import spec_of, wanted_for
from llamarig.errors import ExitCode, RigError

if TYPE_CHECKING:
    from llamarig.converge.events import Sink
    from llamarig.spec.load import LoadedHost


@dataclass(frozen=True)
class Options:
    """How to free space."""

    build_cache: bool = False
    break_lock: bool = False
    become_password_file: str | None = None


@dataclass
class HostGc:
    """One host on its way."""

    host: str
    variables: dict[str, Any] = field(default_factory=dict)
    gone: list[dict[str, Any]] = field(default_factory=list)
    """What goes, or has gone (``removed``): kind, path, bytes, reason."""
    kept: list[dict[str, Any]] = field(default_factory=list)
    unknown: list[dict[str, str]] = field(default_factory=list)
    left: list[dict[str, Any]] = field(default_factory=list)
    """What was to go and stayed after all."""
    busy: str = ""
    """Who holds the host's lock."""
    begun: bool = False
    """Whether a removal was begun; what came of it is not known where the host fell silent."""
    removed: bool = False
    error: RigError | None = None
    seconds: float = 0.0

    @property
    def bytes(self) -> int:
        """What goes, on the disk."""
        return sum(each["bytes"] for each in self.gone)

    def to_json(self) -> dict[str, Any]:
        """The documented form of ``gc --json``."""
        error = None
        if self.error is not None:
            error = {key: getattr(self.error, key) for key in ("what", "where", "why", "fix")}
        return {
            "host": self.host,
            "gone": [_told(each) for each in self.gone],
            "kept": [_told(each) for each in self.kept],
            "unknown": self.unknown,
            "left": [_told(each) for each in self.left],
            "removed": self.removed,
            "mib": _mib(self.bytes),
            "ok": error is None,
            "error": error,
            "seconds": round(self.seconds, 2),
        }


def _mib(count: int) -> float:
    return round(count / 2**20, 2)


def _told(thing: dict[str, Any]) -> dict[str, Any]:
    return {
        "kind": thing["kind"],
        "path": thing["path"],
        "mib": _mib(thing["bytes"]),
        "reason": thing["reason"],
    }


def look(root: Path, hosts: list[LoadedHost], private: Path, options: Options) -> list[HostGc]:
    """Look at all hosts at once, and decide for each; one that cannot be judged has its error. Nothing is touched."""
    started = time.monotonic()
    found = [_prepared(root, loaded, private, options) for loaded in hosts]
    asked = [host for host in found if host.error is None]
    if not asked:
        return found
    run = _play(asked, private, options, {"llamarig_gc_look": True}, None)
    for host in asked:
        host.seconds = time.monotonic() - started
        host.error = _error(run, host.host)
        decided = run.hosts[host.host].results.get("rig_gc", {})
        if host.error is None:
            host.gone, host.kept, host.unknown = decided["gone"], decided["kept"], decided["unknown"]
            host.busy = str(decided["busy"])
    return found


def _prepared(root: Path, loaded: LoadedHost, private: Path, options: Options) -> HostGc:
    from llamarig.spec.unbuilt import refused_by_apply  # noqa: PLC0415 - the spec's own rules, needed here only

    try:
        if refused := refused_by_apply(spec_of(loaded)):
            # What is not pinned names no file: the very one that is meant might go.
            raise refused[0]
        variables = host_variables(root, loaded, wanted_for(root, loaded), private)
        lend_password(variables, options.become_password_file)
    except RigError as error:
        return HostGc(loaded.host, error=error)
    return HostGc(loaded.host, variables)


def refuse_busy(hosts: list[HostGc]) -> None:
    """Give those whose lock somebody else holds their error, before anybody is asked."""
    for host in hosts:
        if host.error is None and host.busy:
            fix = "wait until it is done; if that process is gone for good, give --break-lock"
            what = f"another apply holds this host's lock: {host.busy}"
            host.error = RigError(what, host.host, fix=fix, code=ExitCode.HOST_FAILED)


def remove(hosts: list[HostGc], private: Path, options: Options, sink: Sink) -> None:
    """Remove what was found and agreed to, prove it, and write into each host what became of it."""
    started = time.monotonic()
    agreed = {host.host: [f"{each['kind']} {each['path']}" for each in host.gone] for host in hosts}
    run = _play(hosts, private, options, {"llamarig_gc_agreed": agreed}, sink)
    for host in hosts:
        host.begun = True
        host.seconds += time.monotonic() - started
        host.error = _error(run, host.host)
        told = run.hosts[host.host].results.get("rig_gc", {})
        reasons = {each["path"]: each["reason"] for each in host.gone}
        host.gone = [{"reason": reasons.get(each["path"], ""), **each} for each in told.get("removed", [])]
        host.left = told.get("left", [])
        host.removed = bool(host.gone)


def _play(hosts: list[HostGc], private: Path, options: Options, more: dict[str, Any], sink: Sink | None) -> Run:
    extra = {
        "llamarig_break_lock": options.break_lock,
        "llamarig_gc_build_cache": options.build_cache,
        **more,
    }
    return run_playbook("gc", {host.host: host.variables for host in hosts}, private, sink=sink, extra=extra)


def _error(run: Run, host: str) -> RigError | None:
    outcome = run.hosts[host]
    if outcome.failures:
        return explain_all(host, outcome.failures)
    if not outcome.ran or "rig_gc" not in outcome.results:
        why = f"{run.messages[-4000:]}\nansible-playbook ended with status {run.status}".strip()
        return RigError("Ansible ended before this host was done", host, why, code=ExitCode.HOST_FAILED)
    return None
