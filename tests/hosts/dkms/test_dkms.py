"""Debian's real DKMS against Debian's real kernel headers: a module that does not build, and one that does.

The kernel itself is not installed: its image is a file of that name, and its package a stand-in. What is compiled, with
which headers and compiler, is real.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from lab import Host, Lab, archives
from lab.apt_sources import SUITE
from lab.project import Project

from tests.support import driver_host
from tests.support.driver_repository import StandIn, deb

VERSION = "550.163.01"
pytestmark = pytest.mark.skipif(
    driver_host.own_driver_is_loaded(), reason="the driver of this machine shows through /sys into every test host"
)


@dataclass(frozen=True)
class Bench:
    host: Host
    project: Project
    kernel: str

    def want(self, flavour: str) -> driver_host.Played:
        driver = {"source": "debian", "version": VERSION, "flavour": flavour}
        driver_host.describe(self.project, self.host, driver)
        return driver_host.play(self.project, self.host, 3600)


def kernel_of(host: Host, metapackage: str) -> tuple[str, str]:
    """(kernel, package version) that a metapackage of headers stands for in the host's own archive."""
    shown = host.exec(f"apt-cache show {metapackage}").output
    match = re.search(r"^Depends: linux-headers-(\S+) \(= ([^)]+)\)", shown, re.MULTILINE)
    assert match is not None, shown
    return match[1], match[2]


def pretend(host: Host, kernel: str, version: str) -> None:
    """A kernel to boot: a file in /boot, and a package so that its headers find what they depend on."""
    driver_host.kernel(host, kernel)
    image = StandIn(f"stand-in-{kernel.replace('+', '-')}", version, f"Provides: linux-image-{kernel} (= {version})\n")
    host.write("/srv/image.deb", deb(image))
    host.exec("dpkg -i /srv/image.deb")


@pytest.fixture(scope="module")
def bench(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    host = lab.host("dkms", fresh=True)
    host.exec(
        "find /etc/apt -name '*.list' -exec "
        f"sed -i 's/ {SUITE} main.*/ {SUITE} main contrib non-free non-free-firmware/' {{}} + && apt-get -q update"
    )
    kernel, version = kernel_of(host, "linux-headers-amd64")
    pretend(host, kernel, version)
    yield Bench(host, Project(tmp_path_factory.mktemp("dkms-project")), kernel)
    archives.take_back(host)
    lab.discard("dkms")


def test_a_module_that_does_not_build_is_told_and_then_replaced(bench: Bench) -> None:
    failed = bench.want("open").failed(
        f"kernel {bench.kernel} has no module {VERSION}",
        f"nvidia-current-open/{VERSION} is only added",
        "too few arguments to function",
        "pci_resize_resource",
        "do not reboot",
    )
    assert "A reboot is needed" not in failed.output
    assert "half-configured" in bench.host.exec("dpkg-query -W -f '${Package} ${Status}\\n' 'nvidia-*'").output

    # What failed is on hold of nobody: the next apply, with the other flavour, takes it away in its one transaction.
    replaced = bench.want("proprietary").ok()
    assert any(
        "nvidia-open-kernel-dkms is of the open flavour, wanted proprietary" in line for line in replaced.actions
    )
    assert bench.host.exec("dpkg --audit").output == ""
    told = bench.host.exec("dkms status").output
    assert re.search(rf"^nvidia-current/{VERSION}, {re.escape(bench.kernel)}, x86_64: installed", told, re.MULTILINE), (
        told
    )
    assert bench.want("proprietary").ok().actions == []

    # The second kernel comes without headers: its module is missing until the next apply, and that is an action.
    cloud, version = kernel_of(bench.host, "linux-headers-cloud-amd64")
    pretend(bench.host, cloud, version)
    mended = bench.want("proprietary").ok()
    assert f"kernel {cloud}: the headers of kernel {cloud} are not installed, so it has no module" in mended.actions
    told = bench.host.exec("dkms status").output
    assert told.count(": installed") == 2, told
