"""Real apt on Debian 13 with a repository that the tests sign; its packages are stand-ins that bear NVIDIA's names."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from lab import Lab
from lab.project import Project

from llamarig.render.driver import PIN
from tests.support import driver_host
from tests.support.driver_bench import PLACE, Bench
from tests.support.driver_repository import KERNEL, StandIn, deb, headers, set_of

OLD, NEW = "590.48.01", "610.57.04"
pytestmark = driver_host.without_a_driver_here


@pytest.fixture(scope="module")
def bench(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    host = lab.host("driver", fresh=True)
    driver_host.kernel(host, KERNEL)
    yield Bench(host, Project(tmp_path_factory.mktemp("driver-project")), tmp_path_factory.mktemp("gpg"))
    lab.discard("driver")


def test_a_driver_is_installed_refused_and_upgraded(bench: Bench) -> None:
    signer, fingerprint = bench.signer("good")
    bench.offer([*set_of(OLD), headers()], signer)
    bench.host.write("/etc/apt/sources.list.d/cuda.list", f"deb [trusted=yes] file:{PLACE} /\n".encode())

    first = bench.want(OLD, "good", fingerprint).ok()
    assert any(line.startswith("nvidia-driver-cuda: is not installed") for line in first.actions)
    there = bench.packages()
    for name in ("nvidia-driver-cuda", "nvidia-kernel-open-dkms", "libcuda1", "firmware-nvidia-gsp"):
        assert f"{name} {OLD}-1 hold" in there
    assert f"linux-headers-{KERNEL} 1 install" in there
    assert "linux-image" not in there
    assert bench.host.exec("ls /etc/apt/sources.list.d/").output.split().count("cuda.list") == 0
    assert "BEGIN PGP PUBLIC KEY" in bench.host.exec("cat /etc/apt/sources.list.d/llamarig-nvidia.sources").output
    assert bench.host.exec("systemctl is-enabled llamarig-nvidia-nodes.service").output.strip() == "enabled"
    # A stand-in of the tool that makes the nodes: without it nothing can be said of the unit's command.
    bench.host.write("/usr/bin/nvidia-modprobe", b"#!/bin/sh\n", mode=0o755)
    unit = "/etc/systemd/system/llamarig-nvidia-nodes.service:x.service"
    verified = bench.host.exec(f"systemd-analyze verify --man=no --recursive-errors=one {unit}", check=False)
    assert verified.code == 0, verified.output

    second = bench.want(OLD, "good", fingerprint).ok()
    assert second.actions == []

    # Field case 2: the pin is not in the index. What is there is said, and nothing was touched.
    before = bench.packages()
    bench.want("580.126.09", "good", fingerprint).failed("does not offer driver 580.126.09", f"there is {OLD}-1")
    assert bench.packages() == before

    # Somebody's upgrade in the night cannot part them: they are on hold, and the pin says which version.
    bench.offer([*set_of(OLD), *set_of(NEW), headers()], signer)
    bench.host.exec("apt-get update -q && apt-get -y -q upgrade")
    assert f"libcuda1 {OLD}-1 hold" in bench.packages()

    upgraded = bench.want(NEW, "good", fingerprint).ok()
    assert f"libcuda1: libcuda1 is {OLD}, wanted {NEW}" in upgraded.actions
    assert f"libcuda1 {NEW}-1 hold" in bench.packages()
    assert f"nvidia-kernel-open-dkms {NEW}-1 hold" in bench.packages()


def test_a_key_bound_with_sha1_is_refused_in_apts_own_words(bench: Bench) -> None:
    signer, fingerprint = bench.signer("weak", "SHA1")
    bench.offer([*set_of(OLD), *set_of(NEW), headers()], signer)
    before, lists = bench.packages(), bench.host.exec("cd /etc/apt && find . -type f | xargs sha256sum").output
    bench.want(OLD, "weak", fingerprint).failed(
        "apt does not trust", "SHA1 is not considered secure", "nothing was touched"
    )
    assert bench.packages() == before
    assert bench.host.exec("cd /etc/apt && find . -type f | xargs sha256sum").output == lists
    assert bench.host.exec("ls -d /var/lib/llamarig-driver-* 2>/dev/null", check=False).output == ""


def test_kernels_to_come_get_their_headers_and_a_mask_is_taken_away(bench: Bench) -> None:
    signer, fingerprint = bench.signer("later")
    bench.offer([*set_of(NEW), headers(), StandIn("linux-headers-amd64", "99.1-1")], signer)
    # The archive has a linux-headers-amd64 of its own: the one beside the installed kernels' is taken.
    bench.host.write("/srv/image.deb", deb(StandIn("linux-image-amd64", "99.1-1")))
    bench.host.exec("dpkg -i /srv/image.deb && systemctl mask nvidia-persistenced.service")
    done = bench.want(NEW, "later", fingerprint).ok()
    told = "\n".join(done.actions)
    assert "linux-headers-amd64: linux-image-amd64 brings new kernels" in told
    assert "nvidia-persistenced.service: is masked" in told
    assert "linux-headers-amd64 99.1-1 install" in bench.packages()
    assert bench.host.exec("ls -A /etc/systemd/system/nvidia-persistenced.service", check=False).code != 0
    assert bench.want(NEW, "later", fingerprint).ok().actions == []


def test_a_driver_that_is_wanted_no_more_leaves_its_packages_alone(bench: Bench) -> None:
    assert f"libcuda1 {NEW}-1 hold" in bench.packages(), "what the first test leaves"
    gone = bench.unwanted().ok()
    assert "libcuda1: libcuda1 is held for a driver that the spec names no more" in gone.actions
    assert f"{PIN}: is left of a driver that the spec names no more" in gone.actions
    there = bench.packages()
    assert f"libcuda1 {NEW}-1 install" in there
    assert f"nvidia-kernel-open-dkms {NEW}-1 install" in there
    assert " hold" not in there
    # The spec still builds for cards: what makes their nodes at boot stays, and nothing else.
    left = bench.host.exec("find /etc -name '*llamarig-n*' -o -name '52llamarig*'").output.split()
    assert sorted(left) == [
        "/etc/modprobe.d/llamarig-nouveau.conf",
        "/etc/modules-load.d/llamarig-nvidia.conf",
        "/etc/systemd/system/llamarig-nvidia-nodes.service",
        "/etc/systemd/system/multi-user.target.wants/llamarig-nvidia-nodes.service",
    ]
    assert bench.unwanted().ok().actions == []
