"""Real apt and dpkg that were cut off, that fail, or that somebody else uses: met with a repair, or a clear word.

Packages are stand-ins; the process that holds dpkg's lock is one that does nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from lab import Host, Lab
from lab.faults import wait_for
from lab.project import Project

from tests.support import driver_host
from tests.support.driver_bench import Bench
from tests.support.driver_repository import KERNEL, StandIn, deb, headers, set_of

VERSION = "610.57.04"
LOCK = "/var/lib/dpkg/lock-frontend"
SLOW = """#!/bin/sh
# Hangs, or fails, as long as the test wants it to.
touch /run/slow-began
while [ -e /srv/hang ]; do sleep 0.2; done
test ! -e /srv/fail
"""
pytestmark = driver_host.without_a_driver_here


@dataclass(frozen=True)
class Wanted:
    """A host that lacks its driver, and the spec that wants it."""

    bench: Bench
    fingerprint: str

    def apply(self, *options: str) -> driver_host.Played:
        return self.bench.want(VERSION, "good", self.fingerprint, *options)


@pytest.fixture(scope="module")
def wanted(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wanted]:
    host = lab.host("packages", fresh=True)
    driver_host.kernel(host, KERNEL)
    bench = Bench(host, Project(tmp_path_factory.mktemp("packages-project")), tmp_path_factory.mktemp("gpg"))
    signer, fingerprint = bench.signer("good")
    bench.offer([*set_of(VERSION), headers()], signer)
    yield Wanted(bench, fingerprint)
    lab.discard("packages")


def state(host: Host, package: str) -> str:
    return host.exec(f"dpkg-query -W -f '${{db:Status-Status}}' {package} 2>/dev/null", check=False).output.strip()


def kill_dpkg_within_slow(host: Host) -> None:
    """Begin to install a package of somebody else's, and kill dpkg while its script runs."""
    host.write("/srv/slow.deb", deb(StandIn("slow", "1", after=SLOW)))
    host.exec("touch /srv/hang; systemd-run --unit=others-dpkg dpkg -i /srv/slow.deb")
    wait_for("the script of the package", lambda: host.exec("ls /run/slow-began", check=False).code == 0, 30)
    host.exec("systemctl kill --signal=SIGKILL others-dpkg; rm -f /srv/hang")
    assert state(host, "slow") == "half-configured"


def test_a_package_that_cannot_be_finished_is_named_and_nothing_of_the_driver_is_installed(wanted: Wanted) -> None:
    host = wanted.bench.host
    kill_dpkg_within_slow(host)
    host.exec("touch /srv/fail")
    failed = wanted.apply().failed("dpkg cannot finish with slow", "then apply again")
    assert "Traceback" not in failed.output
    assert state(host, "nvidia-driver-cuda") == ""


def test_another_apt_that_does_not_end_is_named(wanted: Wanted) -> None:
    host = wanted.bench.host
    hold(host, 600)
    try:
        failed = wanted.apply("--extra-vars", "nvidia_driver_apt_lock_timeout=3").failed(
            "another apt or dpkg works on this host and did not end within 3 s: /usr/bin/python3 -c", "apply again"
        )
    finally:
        host.exec("systemctl stop others-apt")
    assert "Traceback" not in failed.output
    assert state(host, "nvidia-driver-cuda") == ""


def test_a_killed_dpkg_is_finished_and_an_apt_that_ends_is_waited_for(wanted: Wanted) -> None:
    host = wanted.bench.host
    host.exec("rm -f /srv/fail")
    assert state(host, "slow") == "half-configured"
    hold(host, 25)
    done = wanted.apply().ok()
    assert "Wait for another apt or dpkg to finish" in done.output
    assert state(host, "slow") == "installed"
    assert state(host, "nvidia-driver-cuda") == "installed"
    assert host.exec("dpkg --audit").output == ""
    assert wanted.apply().ok().actions == []


def hold(host: Host, seconds: int) -> None:
    """Somebody who holds dpkg's lock for so long."""
    script = f"import fcntl, time; file = open('{LOCK}', 'r+'); fcntl.lockf(file, fcntl.LOCK_EX); time.sleep({seconds})"
    host.exec(["systemd-run", "--collect", "--unit=others-apt", "python3", "-c", script])
    taken = f"import fcntl; fcntl.lockf(open('{LOCK}', 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    wait_for("the lock", lambda: host.exec(["python3", "-c", taken], check=False).code != 0, 20)
