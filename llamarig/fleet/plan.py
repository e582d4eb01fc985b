"""What a rollout would do: specs and observations in; waves, actions, hosts in use and releases to build out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from llamarig.compare import Action, compare, learn, restarts
from llamarig.compare.reboot import ahead
from llamarig.compare.view import as_text, view_of
from llamarig.converge.refuse import refusals
from llamarig.converge.wanted import plan_for, spec_of, wanted_for
from llamarig.errors import RigError
from llamarig.fleet.policy import Use, Wave, waves
from llamarig.plan.many import on_all_cores
from llamarig.spec.fleet_labels import uncarried_by

if TYPE_CHECKING:
    from llamarig.spec.load import LoadedHost
    from llamarig.spec.rollout import Rollout

Verdict = Literal["change", "nothing-to-do", "in-use", "unreachable", "refused"]
Observation = Mapping[str, Any] | RigError
_CURRENT = "releases/"


@dataclass(frozen=True, slots=True)
class HostPlan:
    """What the rollout would do with one host."""

    host: str
    verdict: Verdict
    actions: tuple[Action, ...] = ()
    restarts: tuple[str, ...] = ()
    """Services that would be started or restarted."""
    release: str = ""
    """Id of the wanted release; empty where the host cannot be planned."""
    former: str | None = None
    """Id of the release that it runs now."""
    builds: bool = False
    """Whether the wanted release has to be built: neither the host nor the controller has it."""
    reason: str = ""
    """Why it is not changed; or every kind of action in words."""
    reboot: str = ""
    """Why its change cannot end without a reboot, where that can be foreseen."""
    reboot_policy: str = ""
    """Its ``maintenance.reboot``."""
    refusals: tuple[RigError, ...] = ()
    """Everything that stands against applying its spec."""

    def to_json(self) -> dict[str, Any]:
        """The documented form."""
        return {
            "host": self.host,
            "verdict": self.verdict,
            "reason": self.reason,
            "actions": [action.to_json() for action in self.actions],
            "restarts": list(self.restarts),
            "from-release": self.former,
            "to-release": self.release or None,
            "reboot": {"needed": self.reboot, "policy": self.reboot_policy} if self.reboot else None,
            "errors": [{"what": e.what, "where": e.where, "why": e.why, "fix": e.fix} for e in self.refusals],
        }


@dataclass(frozen=True)
class FleetPlan:
    """The plan of a whole rollout."""

    waves: tuple[Wave, ...]
    hosts: dict[str, HostPlan]
    builds: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Release id -> the hosts that wait for it; each is built once."""
    warnings: tuple[tuple[str, str], ...] = ()
    """What the policy says to no effect over these hosts, each with a fix."""

    def count(self, verdict: Verdict) -> int:
        """How many hosts have that verdict."""
        return sum(1 for host in self.hosts.values() if host.verdict == verdict)

    def with_use(self, use: Mapping[str, Use | None]) -> FleetPlan:
        """The same, when ``use`` says which hosts are in use."""
        return replace(self, hosts={name: _with_use(host, use.get(name)) for name, host in self.hosts.items()})

    def to_json(self) -> dict[str, Any]:
        """The documented form of ``llamarig rollout plan --json``."""
        return {
            "waves": [{"name": wave.name, "hosts": list(wave.hosts)} for wave in self.waves],
            "hosts": {name: host.to_json() for name, host in self.hosts.items()},
            "builds": {release: list(names) for release, names in self.builds.items()},
            "warnings": [{"message": message, "fix": fix} for message, fix in self.warnings],
        }


def plan_rollout(
    root: Path,
    hosts: Sequence[LoadedHost],
    observed: Mapping[str, Observation],
    policy: Rollout,
    use: Mapping[str, Use | None] | None = None,
) -> FleetPlan:
    """Plan, render and compare every host, on all cores; nothing is touched, and one bad host does not stop the others.

    ``observed`` holds what each host is, or why it did not say so. ``use`` says which hosts are in use
    (:func:`llamarig.fleet.policy.busy`); None: nobody has asked.
    """
    planned = on_all_cores(lambda number: _planned(root, hosts[number], observed), len(hosts))
    by_name = {each.host: each for each in planned}
    labels = {loaded.host: loaded.spec.labels if loaded.spec is not None else {} for loaded in hosts}
    builds: dict[str, list[str]] = {}
    for each in by_name.values():
        if each.builds:
            builds.setdefault(each.release, []).append(each.host)
    whole = {release: tuple(names) for release, names in builds.items()}
    made = FleetPlan(waves(labels, policy), by_name, whole, uncarried_by(hosts, policy))
    return made if use is None else made.with_use(use)


def _planned(root: Path, loaded: LoadedHost, observed: Mapping[str, Observation]) -> HostPlan:
    try:
        return _compared(root, loaded, observed.get(loaded.host))
    except RigError as error:
        return _refused(loaded.host, [error])


def _refused(host: str, errors: Sequence[RigError]) -> HostPlan:
    return HostPlan(host, "refused", reason=_first_line(errors[0]), refusals=tuple(errors))


def _compared(root: Path, loaded: LoadedHost, seen: Observation | None) -> HostPlan:
    spec = spec_of(loaded)
    plan = plan_for(root, loaded)
    if refused := refusals(loaded, plan, root):
        return _refused(loaded.host, refused)
    wanted = wanted_for(root, loaded, plan)
    if seen is None or isinstance(seen, RigError):
        why = "nobody has looked at it" if seen is None else _first_line(seen)
        return HostPlan(loaded.host, "unreachable", release=wanted.release.id, reason=why)
    known = learn(wanted, dict(seen))
    actions = tuple(compare(known, dict(seen)))
    current = as_text(seen.get("current"))
    return HostPlan(
        loaded.host,
        "change" if actions else "nothing-to-do",
        actions,
        tuple(restarts(list(actions), known)),
        wanted.release.id,
        current.removeprefix(_CURRENT) if current else None,
        builds=wanted.release.artifact is None and any(action.kind == "release" for action in actions),
        reason=_kinds(actions),
        reboot=ahead(view_of(known, seen)),
        reboot_policy=spec.maintenance.reboot,
    )


def _with_use(planned: HostPlan, use: Use | None) -> HostPlan:
    """A host that would be changed and is in use is left for later, unless its requests may be waited for."""
    if planned.verdict != "change" or use is None:
        return planned
    words = f"{planned.reason}; {use.reason}, which is waited for" if use.drains else use.reason
    return replace(planned, verdict="change" if use.drains else "in-use", reason=words)


def _kinds(actions: Sequence[Action]) -> str:
    counts: dict[str, int] = {}
    for action in actions:
        counts[action.kind] = counts.get(action.kind, 0) + 1
    return ", ".join(f"{count} {kind}" for kind, count in counts.items())


def _first_line(error: RigError) -> str:
    return (f"{error.what}: {error.why}" if error.why else error.what).partition("\n")[0]


__all__ = ["FleetPlan", "HostPlan", "Verdict", "plan_rollout"]
