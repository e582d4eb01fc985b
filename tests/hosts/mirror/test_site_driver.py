"""A driver from a mirror, on a host whose own lists lead nowhere; its packages are stand-ins without a driver."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import yaml
from lab import Host, Lab
from lab.project import Project

from tests.support import driver_host
from tests.support.driver_repository import KERNEL, headers, set_of
from tests.support.mirror.stand_ins import SYSTEM, mirror_of

VERSION = "590.48.01"
URL = "http://127.0.0.1:8000"
LISTS = "/etc/apt/sources.list.d"
NOWHERE = "deb http://127.0.0.1:9/debian trixie main\n"
pytestmark = driver_host.without_a_driver_here


@dataclass(frozen=True)
class Bench:
    """A machine that serves the mirror to itself, and its project with a copy of the mirror."""

    host: Host
    project: Project
    fingerprint: str

    def want(self, mirror: bool) -> driver_host.Played:
        """Have the driver from the mirror's repository; the spec names the mirror as its site's, or does not."""
        driver = {
            "source": "mirror",
            "location": f"{URL}/debian/{SYSTEM}",
            "version": VERSION,
            "flavour": "open",
            "key": "key.asc",
            "key-fingerprint": self.fingerprint,
        }
        spec: dict[str, Any] = yaml.safe_load(driver_host.SPEC.read_text()) | {"driver": driver}
        if mirror:
            spec["mirror"] = {"path": "mirror", "url": URL}
        self.project.describe(self.host, spec)
        return driver_host.play(self.project, self.host)


@pytest.fixture(scope="module")
def bench(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    host = lab.host("driver", fresh=True)
    driver_host.kernel(host, KERNEL)
    project = Project(tmp_path_factory.mktemp("site-project"))
    mirror = project.directory / "mirror"
    fingerprint = mirror_of([*set_of(VERSION), headers()], mirror)
    served = mirror / "debian" / SYSTEM
    shutil.copy(served / "key.asc", project.directory / "key.asc")
    for file in served.iterdir():
        host.write(f"/srv/mirror/debian/{SYSTEM}/{file.name}", file.read_bytes())
    host.exec("chmod -R a+rX /srv/mirror")
    host.exec("systemd-run --unit site python3 -m http.server --bind 127.0.0.1 --directory /srv/mirror 8000")
    host.exec(f"rm -f {LISTS}/*")
    host.write("/etc/apt/sources.list", NOWHERE.encode())
    yield Bench(host, project, fingerprint)
    lab.discard("driver")


def test_a_list_of_the_host_that_leads_nowhere_is_refused_without_a_mirror(bench: Bench) -> None:
    before = driver_host.packages(bench.host)
    bench.want(mirror=False).failed("the index of the host's own package sources cannot be read", "nothing was touched")
    assert driver_host.packages(bench.host) == before
    assert bench.host.exec(f"ls {LISTS}").output == ""


def test_with_a_mirror_its_list_and_the_drivers_are_all_that_is_read(bench: Bench) -> None:
    first = bench.want(mirror=True).ok()
    assert any(line.startswith("nvidia-driver-cuda: is not installed") for line in first.actions)
    there = driver_host.packages(bench.host)
    for name in ("nvidia-driver-cuda", "nvidia-kernel-open-dkms", "libcuda1"):
        assert f"{name} {VERSION}-1 hold" in there
    assert f"linux-headers-{KERNEL} 1 install" in there
    # Its own lists stay what they were: whoever has written them may have his reasons.
    assert bench.host.exec("cat /etc/apt/sources.list").output == NOWHERE
    assert bench.host.exec("ls -d /var/lib/llamarig-driver-* 2>/dev/null", check=False).output == ""
    assert bench.want(mirror=True).ok().actions == []
