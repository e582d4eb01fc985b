"""Real apt and its autoremove: the kernel that was proven stays, though it is neither running nor among the newest."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from lab import Host, Lab
from lab.project import ROOT, Project

from tests.support.driver_repository import StandIn, deb

KERNELS = [f"99.{number}.0+deb13-amd64" for number in (1, 2, 3, 4)]


@dataclass(frozen=True)
class Bench:
    host: Host
    project: Project

    def boot(self, operation: str, kernel: str) -> None:
        """The module that a rollback and a reboot use; a container has no GRUB, so it chooses nothing."""
        arguments = f"operation={operation} kernel={kernel}"
        command = ["ansible", "-i", str(self.project.inventory), self.host.name, "-m", "rig_boot", "-a", arguments]
        environment = dict(
            self.project.environment(),
            ANSIBLE_CONFIG=str(ROOT / "ansible.cfg"),
            LC_ALL=os.environ.get("LC_ALL", "C.UTF-8"),
        )
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def would_go(self) -> set[str]:
        """The kernels that `apt autoremove` would take away."""
        said = self.host.exec("apt-get -s autoremove").output
        return set(re.findall(r"^Remv linux-image-(\S+)", said, re.MULTILINE))


@pytest.fixture(scope="module")
def bench(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    host, project = lab.host("kernels", fresh=True), Project(tmp_path_factory.mktemp("kernels-project"))
    project.describe(host)
    for kernel in KERNELS:
        # apt tells kernels apart by the versions of their packages.
        package = StandIn(f"linux-image-{kernel}", f"{kernel.partition('+')[0]}-1")
        host.write(f"/srv/linux-image-{kernel}.deb", deb(package))
    host.exec("dpkg -i /srv/linux-image-*.deb && apt-mark auto 'linux-image-*'")
    yield Bench(host, project)
    lab.discard("kernels")


def test_a_proven_kernel_is_not_removed_by_itself(bench: Bench) -> None:
    assert bench.would_go() == set(KERNELS[:2]), "what apt does without us: the two newest stay"
    bench.boot("choose", KERNELS[0])
    assert bench.would_go() == {KERNELS[1]}
    bench.host.write(
        "/var/lib/llamarig/kernels.json", json.dumps({"schema": 1, "proven": [KERNELS[1], KERNELS[0]]}).encode()
    )
    bench.boot("choose", KERNELS[1])
    assert bench.would_go() == set()
    # Another one was proven: the guard goes on, and no kernel is kept for ever.
    bench.boot("keep", "")
    assert bench.would_go() == {KERNELS[0]}
