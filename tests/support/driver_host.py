"""A test host with a kernel to boot, and the role nvidia_driver run on it as playbooks/site.yml runs it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from lab import Host
from lab.host import Described
from lab.project import ROOT, Project

from tests.support.driver_repository import StandIn, deb

PLAYBOOK = "tests/hosts/driver/driver.yml"
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


without_a_driver_here = pytest.mark.skipif(
    Path("/sys/module/nvidia").exists(), reason="the driver of this machine shows through /sys into every test host"
)
"""What asks a test host for its driver runs only where this machine has loaded none."""


def describe(project: Project, host: Described, driver: dict[str, Any] | None, release: str = "13") -> None:
    """A spec of the CUDA backend with this driver, or with none, on that release of Debian."""
    spec = yaml.safe_load(SPEC.read_text()) | {"driver": driver}
    spec |= {"os": {"distribution": "debian", "release": release}}
    project.describe(host, {key: value for key, value in spec.items() if value is not None})


def play(project: Project, host: Described, seconds: float = 1800.0, options: Sequence[str] = ()) -> Played:
    """Run the driver's part of an apply; ``options`` are of ansible-playbook."""
    ran = project.play(host, PLAYBOOK, *options, seconds=seconds)
    return Played(ran.code, ran.stdout + ran.stderr)


def packages(host: Host) -> str:
    """Every package of the host with its version and what dpkg shall do with it, ``hold`` for those that are held."""
    return host.exec("dpkg-query -W -f '${Package} ${Version} ${db:Status-Want}\\n'").output


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
