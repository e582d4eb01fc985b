"""What it costs to see that a converged fleet has not drifted: used by other benchmarks, which make the hosts."""

from __future__ import annotations

import statistics
from pathlib import Path

from lab import Host, LabError
from lab.project import Project

from benchmarks.converged_apply import ping

BAR = 3.0
ROUNDS = 5


def no_drift(project: Project, hosts: list[Host]) -> float:
    """Seconds of ``drift --all`` over exactly these hosts; :class:`LabError` when it finds anything."""
    ran = project.rig("drift", "--all", "--json").ok()
    documents = ran.data["hosts"] if len(hosts) > 1 else [ran.data]
    seen = {each["host"]: each["drift"] for each in documents}
    if set(seen) != {host.name for host in hosts} or any(seen.values()):
        raise LabError(f"this drift was to find nothing on {len(hosts)} hosts, and found {seen}")
    return ran.seconds


def measure(project: Project, hosts: list[Host], inventory: Path) -> bool:
    """Print one line for these hosts, measured alternately with ``ansible -m ping``; whether the bar is met."""
    pings, looks = [], []
    for _ in range(ROUNDS):
        pings.append(ping(project, hosts, inventory))
        looks.append(no_drift(project, hosts))
    floor, ours = statistics.median(pings), statistics.median(looks)
    ratio = ours / floor
    verdict = "met" if ratio <= BAR else "MISSED"
    name = f"drift of a converged fleet over ping, {len(hosts)} host{'s' * (len(hosts) > 1)}"
    print(f"{name}  {ratio:.2f}x ({ours:.2f} s over {floor:.2f} s)  at most {BAR:g}x  {verdict}", flush=True)
    return ratio <= BAR
