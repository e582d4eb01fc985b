"""Eight converged hosts: what a rollout with nothing to do and a look for drift cost over ``ansible -m ping``, and how
many of them compile when all are given another release.

That nothing was done or found is asserted, not assumed.
"""

from __future__ import annotations

import sys

from lab import Host, LabError
from lab.project import demo_spec

from benchmarks.over_ping import Fleet, converged, over_ping

BAR = 3.0
HOSTS = 8


def nothing_to_do(fleet: Fleet) -> float:
    """Seconds of a rollout over all hosts; :class:`LabError` when it did anything."""
    ran = fleet.project.rig("rollout", "start", "--all", "--yes", "--json").ok()
    phases = {name: host["phase"] for name, host in ran.data["hosts"].items()}
    if len(phases) != len(fleet.hosts) or set(phases.values()) != {"nothing-to-do"}:
        raise LabError(f"this rollout was to do nothing on {len(fleet.hosts)} hosts: {phases}")
    return ran.seconds


def no_drift(fleet: Fleet) -> float:
    """Seconds of ``drift --all`` over exactly these hosts; :class:`LabError` when it finds anything."""
    ran = fleet.project.rig("drift", "--all", "--json").ok()
    seen = {each["host"]: each["drift"] for each in ran.data["hosts"]}
    if set(seen) != {host.name for host in fleet.hosts} or any(seen.values()):
        raise LabError(f"this drift was to find nothing on {len(fleet.hosts)} hosts, and found {seen}")
    return ran.seconds


def builders(hosts: list[Host], release: str) -> list[str]:
    """The hosts that have compiled that release, by their own journals."""
    question = f"journalctl --quiet --output=cat --unit=llamarig-build-{release}.service | wc -l"
    return [host.name for host in hosts if int(host.exec(question).output)]


def builds(fleet: Fleet) -> bool:
    """Roll another release over all hosts and print how many compiled it."""
    for host in fleet.hosts:
        spec = demo_spec()
        # The label alone: every file but one is known to the compiler cache, and the release is another.
        spec["engine"]["build-number"] += 1
        fleet.project.describe(host, spec)
    ran = fleet.project.rig("rollout", "start", "--all", "--yes", "--json").ok()
    releases = {host["to-release"] for host in ran.data["hosts"].values()}
    if len(releases) != 1 or {host["phase"] for host in ran.data["hosts"].values()} != {"done"}:
        raise LabError(f"all hosts were to get one release: {ran.data['hosts']}")
    built = builders(fleet.hosts, releases.pop())
    verdict = "met" if len(built) == 1 else "MISSED"
    print(f"distinct builds for {len(fleet.hosts)} identical hosts  {len(built)}  1  {verdict}", flush=True)
    return len(built) == 1


def main() -> int:
    """Make the hosts and measure; 1 when a bar is missed."""
    with converged("bench-fleet", HOSTS) as fleet:
        met = [
            over_ping("rollout with nothing to do", BAR, fleet, nothing_to_do),
            over_ping("drift of a converged fleet", BAR, fleet, no_drift),
            builds(fleet),
        ]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
