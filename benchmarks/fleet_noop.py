"""Eight converged hosts: what a rollout with nothing to do and a look for drift cost over ``ansible -m ping``, and how
many of them compile when all are given another release.

Rollout, drift and ping are measured alternately in one run; the median of each counts. That nothing was done is
asserted, not assumed.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

from lab import Host, Lab, LabError, archives
from lab.project import Project, demo_spec

from benchmarks import fleet_drift
from benchmarks.converged_apply import ping

BAR = 3.0
ROUNDS = 5
HOSTS = 8


def converge(lab: Lab, project: Project) -> list[Host]:
    """Provisioned hosts: the first one is built, the others start from its disk."""
    first = lab.host("fleet-1", fresh=True)
    project.describe(first)
    project.rig("apply", first.name, "--yes", "--json").ok()
    archives.take_back(first)
    image = lab.snapshot(first, "converged")
    hosts = [first, *(lab.host(f"fleet-{number}", fresh=True, image=image) for number in range(2, HOSTS + 1))]
    for host in hosts:
        project.describe(host)
    project.rig("apply", "--all", "--yes", "--json").ok()
    return hosts


def nothing_to_do(project: Project) -> float:
    """Seconds of a rollout over all hosts; :class:`LabError` when it did anything."""
    ran = project.rig("rollout", "start", "--all", "--yes", "--json").ok()
    phases = {name: host["phase"] for name, host in ran.data["hosts"].items()}
    if len(phases) != HOSTS or set(phases.values()) != {"nothing-to-do"}:
        raise LabError(f"this rollout was to do nothing on {HOSTS} hosts: {phases}")
    return ran.seconds


def measure(project: Project, hosts: list[Host], inventory: Path) -> bool:
    """Print the line of the rollout; whether its bar is met."""
    pings, rollouts = [], []
    for _ in range(ROUNDS):
        pings.append(ping(project, hosts, inventory))
        rollouts.append(nothing_to_do(project))
    floor, ours = statistics.median(pings), statistics.median(rollouts)
    ratio = ours / floor
    verdict = "met" if ratio <= BAR else "MISSED"
    figure = f"{ratio:.2f}x ({ours:.2f} s over {floor:.2f} s)"
    print(
        f"rollout with nothing to do over ping, {len(hosts)} hosts  {figure}  at most {BAR:g}x  {verdict}", flush=True
    )
    return ratio <= BAR


def builders(hosts: list[Host], release: str) -> list[str]:
    """The hosts that have compiled that release, by their own journals."""
    question = f"journalctl --quiet --output=cat --unit=llamarig-build-{release}.service | wc -l"
    return [host.name for host in hosts if int(host.exec(question).output)]


def builds(project: Project, hosts: list[Host]) -> bool:
    """Roll another release over all hosts and print how many compiled it."""
    for host in hosts:
        spec = demo_spec()
        # The label alone: every file but one is known to the compiler cache, and the release is another.
        spec["engine"]["build-number"] += 1
        project.describe(host, spec)
    ran = project.rig("rollout", "start", "--all", "--yes", "--json").ok()
    releases = {host["to-release"] for host in ran.data["hosts"].values()}
    if len(releases) != 1 or {host["phase"] for host in ran.data["hosts"].values()} != {"done"}:
        raise LabError(f"all hosts were to get one release: {ran.data['hosts']}")
    built = builders(hosts, releases.pop())
    verdict = "met" if len(built) == 1 else "MISSED"
    print(f"distinct builds for {len(hosts)} identical hosts  {len(built)}  1  {verdict}", flush=True)
    return len(built) == 1


def main() -> int:
    """Make the hosts and measure; 1 when a bar is missed."""
    with Lab("bench-fleet") as lab, tempfile.TemporaryDirectory() as scratch:
        lab.clear()
        project = Project(Path(scratch) / "project")
        hosts = converge(lab, project)
        inventory = Path(scratch) / "hosts.ini"
        met = [measure(project, hosts, inventory), fleet_drift.measure(project, hosts, inventory)]
        met.append(builds(project, hosts))
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
