"""Converged hosts, and what a command over them costs beside ``ansible -m ping`` to the same hosts.

Used by the benchmarks of single verbs. Command and ping are measured alternately in one run; the median of each counts.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lab import Host, Lab, LabError, archives
from lab.project import Project

ROUNDS = 5


@dataclass(frozen=True)
class Fleet:
    """Hosts that are what their specs say, and their project."""

    project: Project
    hosts: list[Host]

    def first(self, count: int) -> Fleet:
        """Some of the hosts, in the same project."""
        return Fleet(self.project, self.hosts[:count])


@contextmanager
def converged(name: str, count: int) -> Iterator[Fleet]:
    """Provisioned hosts in a lab of that name: the first one is built, the others start from its disk."""
    with Lab(name) as lab, tempfile.TemporaryDirectory() as scratch:
        lab.clear()
        project = Project(Path(scratch) / "project")
        first = lab.host(f"{name}-1", fresh=True)
        project.describe(first)
        project.rig("apply", first.name, "--yes", "--json").ok()
        archives.take_back(first)
        image = lab.snapshot(first, "converged")
        hosts = [first, *(lab.host(f"{name}-{number}", fresh=True, image=image) for number in range(2, count + 1))]
        for host in hosts:
            project.describe(host)
        project.rig("apply", "--all", "--yes", "--json").ok()
        yield Fleet(project, hosts)


def ping(fleet: Fleet) -> float:
    """Seconds that ``ansible -m ping`` takes, with SSH set up as llamarig sets it up."""
    lines = [
        f"{host.name} ansible_host={host.address} ansible_user=root ansible_python_interpreter=/usr/bin/python3"
        f" ansible_ssh_common_args='-F {host.ssh_config}'"
        for host in fleet.hosts
    ]
    with tempfile.TemporaryDirectory() as scratch:
        inventory = Path(scratch) / "hosts.ini"
        inventory.write_text("\n".join(lines) + "\n")
        (inventory.parent / "ansible.cfg").write_text("[ssh_connection]\npipelining = true\n")
        command = [str(Path(sys.executable).with_name("ansible")), "all", "-i", str(inventory), "-m", "ping"]
        start = time.monotonic()
        done = subprocess.run(
            command,
            cwd=inventory.parent,
            env=fleet.project.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        seconds = time.monotonic() - start
    if done.returncode != 0 or done.stdout.count(b"SUCCESS") != len(fleet.hosts):
        raise LabError(f"ansible -m ping failed:\n{done.stdout.decode()}{done.stderr.decode()}")
    return seconds


def over_ping(name: str, bar: float, fleet: Fleet, command: Callable[[Fleet], float]) -> bool:
    """Print the line of one command, which returns its seconds, over these hosts; whether its bar is met."""
    pings, commands = [], []
    for _ in range(ROUNDS):
        pings.append(ping(fleet))
        commands.append(command(fleet))
    floor, ours = statistics.median(pings), statistics.median(commands)
    ratio, count = ours / floor, len(fleet.hosts)
    shown = f"{name} over ping, {count} host{'s' * (count > 1)}"
    verdict = "met" if ratio <= bar else "MISSED"
    print(f"{shown}  {ratio:.2f}x ({ours:.2f} s over {floor:.2f} s)  at most {bar:g}x  {verdict}", flush=True)
    return ratio <= bar
