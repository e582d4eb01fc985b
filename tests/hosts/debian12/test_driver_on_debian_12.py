"""The role nvidia_driver on Debian 12: real apt and dpkg, a signed repository of stand-ins that bear NVIDIA's names.

What differs from Debian 13 is apt itself (2.6 with gpgv, not 3.0 with sqv), dpkg and Python. No module is compiled.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from lab import Lab
from lab.image import debian_12
from lab.project import Project

from tests.support import driver_host
from tests.support.driver_bench import PLACE, Bench
from tests.support.driver_repository import KERNEL, headers, set_of

OLD, NEW = "590.48.01", "610.57.04"
pytestmark = driver_host.without_a_driver_here


@pytest.fixture(scope="module")
def bench(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    host = lab.host("bookworm", fresh=True, image=debian_12(lab.client))
    driver_host.kernel(host, KERNEL)
    yield Bench(host, Project(tmp_path_factory.mktemp("bookworm-project")), tmp_path_factory.mktemp("gpg"))
    lab.discard("bookworm")


def test_the_machine_is_debian_12(bench: Bench) -> None:
    assert bench.host.exec("cat /etc/debian_version").output.startswith("12.")
    assert "apt 2.6" in bench.host.exec("apt-get --version").output


def test_a_driver_is_installed_pinned_held_and_upgraded(bench: Bench) -> None:
    signer, fingerprint = bench.signer("good")
    bench.offer([*set_of(OLD), *set_of(NEW), headers()], signer)
    bench.host.write("/etc/apt/sources.list.d/cuda.list", f"deb [trusted=yes] file:{PLACE} /\n".encode())

    first = bench.want(OLD, "good", fingerprint, release="12").ok()
    assert any(line.startswith("nvidia-driver-cuda: is not installed") for line in first.actions)
    there = bench.packages()
    for name in ("nvidia-driver-cuda", "nvidia-kernel-open-dkms", "libcuda1", "firmware-nvidia-gsp"):
        assert f"{name} {OLD}-1 hold" in there
    assert "linux-image" not in there
    assert "cuda.list" not in bench.host.exec("ls /etc/apt/sources.list.d/").output
    policy = bench.host.exec("apt-cache policy libcuda1").output
    assert f"Candidate: {OLD}-1" in policy
    assert "1001" in policy
    assert bench.host.exec("systemctl is-enabled llamarig-nvidia-nodes.service").output.strip() == "enabled"
    assert bench.want(OLD, "good", fingerprint, release="12").ok().actions == []

    bench.host.exec("apt-get update -q && apt-get -y -q upgrade")
    assert f"libcuda1 {OLD}-1 hold" in bench.packages()

    upgraded = bench.want(NEW, "good", fingerprint, release="12").ok()
    assert f"libcuda1: libcuda1 is {OLD}, wanted {NEW}" in upgraded.actions
    assert f"nvidia-kernel-open-dkms {NEW}-1 hold" in bench.packages()


def test_what_the_index_does_not_have_is_refused_before_anything_is_touched(bench: Bench) -> None:
    signer, fingerprint = bench.signer("other")
    bench.offer([*set_of(OLD), *set_of(NEW), headers()], signer)
    before = bench.packages()
    bench.want("580.126.09", "other", fingerprint, release="12").failed(
        "does not offer driver 580.126.09", f"there is {OLD}-1, {NEW}-1"
    )
    assert bench.packages() == before


def test_a_repository_that_another_key_signs_is_refused_in_apts_own_words(bench: Bench) -> None:
    _, fingerprint = bench.signer("named")
    stranger, _ = bench.signer("stranger")
    bench.offer([*set_of(OLD), *set_of(NEW), headers()], stranger)
    before = bench.packages()
    bench.want(OLD, "named", fingerprint, release="12").failed("apt does not trust", "NO_PUBKEY", "nothing was touched")
    assert bench.packages() == before


def test_a_spec_for_another_release_is_refused(bench: Bench) -> None:
    _, fingerprint = bench.signer("thirteen")
    bench.want(OLD, "thirteen", fingerprint, release="13").failed("The host runs debian 12, its spec says debian 13")
