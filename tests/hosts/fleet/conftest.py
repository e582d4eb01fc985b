"""A fleet of machines that are provisioned already, with a project of its own."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from lab import Host, Lab, faults
from lab.project import Project, Ran, demo_spec

from llamarig.fleet.rollout import places
from llamarig.fleet.rollout.state import State

UNIT = "llama-chat.service"
RECORD = "/var/lib/llamarig/record.json"
MANAGED = f"/etc/systemd/system/{UNIT} /etc/llamarig /opt/llamarig/current {RECORD} /var/lib/llamarig"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave what takes minutes to --full-fleet."""
    if config.getoption("--full-fleet"):
        return
    later = pytest.mark.skip(reason="takes minutes: with --full-fleet")
    for item in items:
        if item.get_closest_marker("full_fleet"):
            item.add_marker(later)


@dataclass
class Rolling:
    """Machines and a project that are rolled over; a change of the window is cheap, and seen in the process."""

    project: Project
    hosts: list[Host]
    full: bool
    context: int = 4096

    @property
    def names(self) -> list[str]:
        """The machines, in the order of the waves."""
        return [host.name for host in self.hosts]

    def want(self, context: int, *, hosts: list[Host] | None = None, **chat: Any) -> None:
        """Write the specs of the fleet (or of some hosts) with that window, and with what else the service is given."""
        for host in self.hosts if hosts is None else hosts:
            spec = demo_spec()
            spec["services"]["chat"] |= {"context": context, **chat}
            self.project.describe(host, spec)
        if hosts is None:
            self.context = context

    def other(self) -> int:
        """The window that is not the one asked for now."""
        return 2048 if self.context == 4096 else 4096

    def rig(self, verb: str, *arguments: str) -> Ran:
        """``llamarig rollout VERB … --json``."""
        return self.project.rig("rollout", verb, *arguments, "--json")

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """A rollout over the fleet that runs beside the test."""
        return self.project.start("rollout", "start", "--all", "--yes", "--json", *arguments)

    def place(self) -> Path:
        """The newest rollout."""
        return places.find(self.project.directory, None)

    def newest(self) -> Path | None:
        """The same; None before the first one."""
        return next(reversed(places.known(self.project.directory)), None)

    def told(self) -> State:
        """What the journal of the newest rollout says now."""
        return State.read(self.place())

    def wait(self, host: Host, phase: str, *, since: Path | None = None) -> None:
        """Until a rollout newer than ``since`` has the host in that phase."""

        def there() -> bool:
            found = places.known(self.project.directory)
            return bool(found) and found[-1] != since and State.read(found[-1]).hosts[host.name].phase == phase

        faults.wait_for(f"{host.name} is {phase}", there, 300)

    def window(self, host: Host) -> int:
        """The window of the process that runs, as its arguments say; the service is up, or this fails."""
        state = host.ssh(f"systemctl is-active {UNIT} || true").strip()
        assert state == "active", f"{UNIT} of {host.name} is {state}"
        pid = faults.main_pid(host, UNIT)
        words = host.ssh(f"tr '\\0' '\\n' </proc/{pid}/cmdline").splitlines()
        assert "--ctx-size" in words, f"process {pid} of {host.name} is {words}"
        return int(words[words.index("--ctx-size") + 1])

    def windows(self) -> dict[str, int]:
        """The same of every host."""
        return {host.name: self.window(host) for host in self.hosts}

    def trace(self, host: Host) -> str:
        """All that a change would leave: the process, and every file of ours with its size and times."""
        listed = host.exec(f"find {MANAGED} -xdev -printf '%p %s %i %C@ %T@\\n' | sort").output
        return f"{faults.main_pid(host, UNIT)}\n{listed}"


@pytest.fixture(scope="session")
def rolling(
    lab: Lab, provisioned_image: str, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Rolling]:
    """Three machines (eight with --full-fleet), as their specs say."""
    full = bool(request.config.getoption("--full-fleet"))
    project = Project(tmp_path_factory.mktemp("fleet"))
    made = [lab.host(f"roll{number}", fresh=True, image=provisioned_image) for number in range(1, 9 if full else 4)]
    fleet = Rolling(project, made, full)
    fleet.want(4096)
    # Made from another machine's disk, each writes its own name into its record first.
    project.rig("apply", "--all", "--yes", "--json").ok()
    yield fleet
    for host in made:
        lab.discard(host.name)
