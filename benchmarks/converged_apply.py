"""What a second apply costs: its wall time over that of ``ansible -m ping`` to the same hosts.

Both are measured alternately in one run, on hosts that are already what their specs say;
the median of each counts. That nothing was done is asserted, not assumed.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from lab import Host, Lab, LabError, archives
from lab.project import Project
from lab.report import actions_of

BAR = 3.5
ROUNDS = 5
HOSTS = 4


def converge(lab: Lab, project: Project) -> list[Host]:
    """Provisioned hosts: the first one is built, the others start from its disk."""
    first = lab.host("bench-1", fresh=True)
    project.describe(first)
    project.rig("apply", first.name, "--yes", "--json").ok()
    archives.take_back(first)
    image = lab.snapshot(first, "converged")
    hosts = [first, *(lab.host(f"bench-{number}", fresh=True, image=image) for number in range(2, HOSTS + 1))]
    for host in hosts:
        project.describe(host)
        project.rig("apply", host.name, "--yes", "--json").ok()
    return hosts


def ping(project: Project, hosts: list[Host], inventory: Path) -> float:
    """Seconds that ``ansible -m ping`` takes, with SSH set up as llamarig sets it up."""
    lines = [
        f"{host.name} ansible_host={host.address} ansible_user=root ansible_python_interpreter=/usr/bin/python3"
        f" ansible_ssh_common_args='-F {host.ssh_config}'"
        for host in hosts
    ]
    inventory.write_text("\n".join(lines) + "\n")
    (inventory.parent / "ansible.cfg").write_text("[ssh_connection]\npipelining = true\n")
    command = [str(Path(sys.executable).with_name("ansible")), "all", "-i", str(inventory), "-m", "ping"]
    start = time.monotonic()
    done = subprocess.run(
        command,
        cwd=inventory.parent,
        env=project.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    seconds = time.monotonic() - start
    if done.returncode != 0 or done.stdout.count(b"SUCCESS") != len(hosts):
        raise LabError(f"ansible -m ping failed:\n{done.stdout.decode()}{done.stderr.decode()}")
    return seconds


def second_apply(project: Project, hosts: list[Host]) -> float:
    """Seconds of an apply that has nothing to do; :class:`LabError` when it did something."""
    ran = project.rig("apply", *(host.name for host in hosts), "--yes", "--json").ok()
    actions = actions_of(ran.data)
    if actions:
        raise LabError(f"this apply was to do nothing, and did {actions}")
    changed = [report.get("changed", 0) for report in ran.data["hosts"]]
    if any(changed):
        raise LabError(f"this apply was to change nothing, and changed {changed}")
    return ran.seconds


def measure(project: Project, hosts: list[Host], inventory: Path) -> bool:
    """Print one line for these hosts; whether the bar is met."""
    pings, applies = [], []
    for _ in range(ROUNDS):
        pings.append(ping(project, hosts, inventory))
        applies.append(second_apply(project, hosts))
    floor, ours = statistics.median(pings), statistics.median(applies)
    ratio = ours / floor
    name = f"second apply over ping, {len(hosts)} host{'s' * (len(hosts) > 1)}"
    verdict = "met" if ratio <= BAR else "MISSED"
    print(f"{name}  {ratio:.2f}x ({ours:.2f} s over {floor:.2f} s)  at most {BAR}x  {verdict}", flush=True)
    return ratio <= BAR


def main() -> int:
    """Make the hosts, measure one and all of them; 1 when a bar is missed."""
    with Lab("bench") as lab, tempfile.TemporaryDirectory() as scratch:
        lab.clear()
        project = Project(Path(scratch) / "project")
        hosts = converge(lab, project)
        inventory = Path(scratch) / "hosts.ini"
        met = [measure(project, some, inventory) for some in (hosts[:1], hosts)]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
