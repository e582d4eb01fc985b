"""Debian's drivers, built by its real DKMS against its real kernel headers: the open module, then the proprietary one.

Whether the open one builds is the archive's affair; a module that builds for no kernel is in test_small_module.py.
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

VERSION = "550.163.01"
pytestmark = driver_host.without_a_driver_here


@dataclass(frozen=True)
class Bench:
    host: Host
    project: Project
    kernel: str

    def want(self, flavour: str) -> driver_host.Played:
        driver = {"source": "debian", "version": VERSION, "flavour": flavour}
        driver_host.describe(self.project, self.host, driver)
        return driver_host.play(self.project, self.host, 3600)


@pytest.fixture(scope="module")
def bench(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    host = lab.host("dkms", fresh=True)
    host.exec(
        "find /etc/apt -name '*.list' -exec "
        f"sed -i 's/ {SUITE} main.*/ {SUITE} main contrib non-free non-free-firmware/' {{}} + && apt-get -q update"
    )
    kernel, version = driver_host.kernel_of(host, "linux-headers-amd64")
    driver_host.pretend(host, kernel, version)
    yield Bench(host, Project(tmp_path_factory.mktemp("dkms-project")), kernel)
    archives.take_back(host)
    lab.discard("dkms")


def test_debians_open_module_is_told_if_it_does_not_build_and_then_replaced(bench: Bench) -> None:
    tried = bench.want("open")
    if f"nvidia-current-open/{VERSION}, {bench.kernel}, x86_64: installed" in bench.host.exec("dkms status").output:
        # The archive decides: its open module did not build on 6.12.118, see docs/evidence/2026-12-01-driver.md.
        tried.ok()
    else:
        tried.failed(
            f"kernel {bench.kernel} has no module {VERSION}",
            f"nvidia-current-open/{VERSION} is only added",
            "error: ",
            "do not reboot",
        )
        assert "A reboot is needed" not in tried.output
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
    cloud, version = driver_host.kernel_of(bench.host, "linux-headers-cloud-amd64")
    driver_host.pretend(bench.host, cloud, version)
    mended = bench.want("proprietary").ok()
    assert f"kernel {cloud}: the headers of kernel {cloud} are not installed, so it has no module" in mended.actions
    told = bench.host.exec("dkms status").output
    assert told.count(": installed") == 2, told
