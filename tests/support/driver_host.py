"""A test host with a kernel to boot, and the role nvidia_driver run on it as playbooks/site.yml runs it."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from lab import Host
from lab.host import Described
from lab.project import ROOT, Project

from tests.support.driver_repository import StandIn, deb

PLAYBOOK = ROOT / "tests/hosts/driver/driver.yml"
SPEC = ROOT / "inventory/rtx-4090.yml"
_TOLD = re.compile(r'"msg": "driver (.*)"')


@dataclass(frozen=True)
class Played:
    """How the play ended, and what it printed."""

    code: int
    output: str

    @property
    def actions(self) -> list[str]:
        """``subject: reason`` of everything that differed when it began."""
        return _TOLD.findall(self.output)

    def ok(self) -> Played:
        assert self.code == 0, self.output
        return self

    def failed(self, *words: str) -> Played:
        assert self.code != 0, self.output
        # Ansible prints a message as JSON: with its line ends escaped.
        for word in words:
            assert word in self.output, f"{word!r} is not in\n{self.output}"
        return self


def own_driver_is_loaded() -> bool:
    """Whether this machine's own NVIDIA driver would show through /sys into a test host."""
    return Path("/sys/module/nvidia").exists()


def describe(project: Project, host: Described, driver: dict[str, Any]) -> None:
    """A spec of the CUDA backend with this driver."""
    spec = yaml.safe_load(SPEC.read_text())
    project.describe(host, spec | {"driver": driver})


def play(project: Project, host: Described, seconds: float = 1800.0, options: Sequence[str] = ()) -> Played:
    """Run the driver's part of an apply; ``options`` are of ansible-playbook."""
    command = ["ansible-playbook", "-i", str(project.inventory), "--limit", host.name, str(PLAYBOOK), *options]
    environment = dict(
        project.environment(),
        ANSIBLE_CONFIG=str(ROOT / "ansible.cfg"),
        ANSIBLE_NOCOLOR="1",
        LC_ALL=os.environ.get("LC_ALL", "C.UTF-8"),
    )
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=seconds,
        check=False,
    )
    return Played(done.returncode, done.stdout)


def kernel(host: Host, version: str) -> None:
    """Something to boot, as far as it is looked at."""
    host.exec(f"mkdir -p /boot /lib/modules/{version} && echo image >/boot/vmlinuz-{version}")


def kernel_of(host: Host, metapackage: str) -> tuple[str, str]:
    """(kernel, package version) that a metapackage of headers stands for in the host's own archive."""
    shown = host.exec(f"apt-cache show {metapackage}").output
    match = re.search(r"^Depends: linux-headers-(\S+) \(= ([^)]+)\)", shown, re.MULTILINE)
    assert match is not None, shown
    return match[1], match[2]


def pretend(host: Host, release: str, version: str) -> None:
    """A kernel to boot: a file in /boot, and a package so that its headers find what they depend on."""
    kernel(host, release)
    image = StandIn(
        f"stand-in-{release.replace('+', '-')}", version, f"Provides: linux-image-{release} (= {version})\n"
    )
    host.write("/srv/image.deb", deb(image))
    host.exec("dpkg -i /srv/image.deb")
