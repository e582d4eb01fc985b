"""Real DKMS and headers with a small module of the tests' own: one that builds for no kernel, then one that does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from lab import Lab, archives
from lab.project import Project

from tests.support import driver_host
from tests.support.driver_bench import Bench
from tests.support.driver_module import with_module

VERSION = "610.57.04"
pytestmark = driver_host.without_a_driver_here


@pytest.fixture(scope="module")
def bench(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    made = Bench(
        lab.host("small-module", fresh=True),
        Project(tmp_path_factory.mktemp("small-module-project")),
        tmp_path_factory.mktemp("gpg"),
    )
    made.host.exec("apt-get -q update")
    yield made
    archives.take_back(made.host)
    lab.discard("small-module")


def test_a_module_that_does_not_build_is_told_in_the_compilers_words_and_mended_by_a_revision(bench: Bench) -> None:
    kernel, version = driver_host.kernel_of(bench.host, "linux-headers-cloud-amd64")
    driver_host.pretend(bench.host, kernel, version)
    signer, fingerprint = bench.signer("good")
    bench.offer(with_module(VERSION, broken=True), signer)
    failed = bench.want(VERSION, "good", fingerprint).failed(
        f"kernel {kernel} has no module {VERSION}",
        f"nvidia/{VERSION} is only added",
        "error: too few arguments to function",
        "remove_proc_subtree",
        "do not reboot",
    )
    assert "A reboot is needed" not in failed.output
    half = bench.host.exec("dpkg-query -W -f '${db:Status-Status}' nvidia-kernel-open-dkms").output
    assert half == "half-configured"

    bench.offer([*with_module(VERSION, broken=True), with_module(VERSION, revision=2)[-1]], signer)
    bench.want(VERSION, "good", fingerprint).ok()
    assert f"nvidia/{VERSION}, {kernel}, x86_64: installed" in bench.host.exec("dkms status").output
    assert bench.host.exec("dpkg --audit").output == ""
    assert bench.want(VERSION, "good", fingerprint).ok().actions == []
