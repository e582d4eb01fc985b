"""The reference spec, byte for byte, with the named overlay, on a fresh Debian 13 host: as far as it goes with no card.

What the overlay replaces, and what is therefore not shown: docs/evidence/not-run.md. The engine is too long to compile
here (141 CUDA jobs); it is taken from the controller's store where a full build has left it.
"""

from __future__ import annotations

import io
import json
import shutil
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from lab import Host, Lab, archives
from lab.apt_sources import SUITE
from lab.packages import ensure_commands
from lab.project import ROOT, Project, Ran
from lab.report import actions_of, host_reports

from llamarig.converge.store.releases import Releases
from llamarig.converge.wanted import wanted_for
from llamarig.spec.load import load_project
from llamarig.spec.overlay import read_overlay
from tests.support import driver_host
from tests.support.driver_repository import KERNEL, Signer, StandIn, headers, repository, set_of
from tests.support.tiny_models import Tiny, write
from tests.support.toolkit.reference import HOURS

NAME = "dual-gpu-256k"
SPEC = ROOT / f"inventory/{NAME}.yml"
OVERLAY = ROOT / f"tests/overlays/{NAME}.yml"
PLACE = "/srv/nvidia"
DRIVER = "610.57.04"
LIBCUDA = "usr/lib/x86_64-linux-gnu/libcuda.so.1"
MISSING = "no /dev/nvidiactl, /dev/nvidia-uvm: is the NVIDIA driver loaded?"
LASTING = {"package", "user", "directory", "driver", "toolkit", "release", "model", "file", "credential"}
"""Kinds of actions that a run which ended at the missing card has behind it for good."""
pytestmark = driver_host.without_a_driver_here


def library(host: Host) -> bytes:
    """The libcuda.so.1 of Debian's own driver, fetched by the host's apt; no package of it is installed."""
    host.exec(
        "find /etc/apt -name '*.list' -exec "
        f"sed -i 's/ {SUITE} main.*/ {SUITE} main contrib non-free non-free-firmware/' {{}} + && apt-get -q update"
        " && cd /root && apt-get -q download libcuda1 && dpkg-deb -x libcuda1_*.deb /root/libcuda"
        f" && find /etc/apt -name '*.list' -exec sed -i 's/ {SUITE} main.*/ {SUITE} main/' {{}} + && apt-get -q update"
    )
    found = host.exec("find /root/libcuda -name 'libcuda.so.*.*' -type f").output.split()
    stream, _ = host.container.get_archive(found[0])
    kept = b"".join(stream)
    host.exec("rm -rf /root/libcuda /root/libcuda1_*.deb")
    return _only_member(kept)


def _only_member(archive: bytes) -> bytes:
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        member = opened.extractfile(opened.getmembers()[0])
        assert member is not None
        return member.read()


def packages(host: Host) -> list[StandIn]:
    """The driver's packages at the version of the spec; one of them holds a real libcuda."""
    full = f"{DRIVER}-1"
    others = [package for package in set_of(DRIVER) if package.name != "libcuda1"]
    return [*others, StandIn("libcuda1", full, files={LIBCUDA: library(host)}), headers()]


@dataclass(frozen=True)
class Bench:
    """The host and the project, and what llamarig says of both with the overlay."""

    host: Host
    project: Project

    def rig(self, *words: str) -> Ran:
        return self.project.rig("--overlay", str(OVERLAY), *words, "--json", seconds=3000)

    def left(self) -> list[dict[str, Any]]:
        return actions_of(self.rig("apply", NAME, "--check").data)

    def refused_for_want_of_a_card(self) -> dict[str, Any]:
        """What an apply reports that got as far as one gets."""
        [report] = host_reports(self.rig("apply", NAME, "--yes").ended(3).data)
        assert MISSING in report["error"]["what"] + report["error"]["why"], report["error"]
        return report

    def release(self) -> str:
        loaded = load_project(self.project.directory, read_overlay(OVERLAY)).named(NAME)
        return str(wanted_for(self.project.directory, loaded).release.id)

    def held(self) -> bool:
        """Whether the store holds the release: then it is copied, and the host needs no toolkit."""
        return Releases.default().get(self.release()) is not None

    def play(self, playbook: str) -> str:
        """A part of what an apply does, by the same roles with the same variables."""
        inventory = str(self.project.inventory / f"{NAME}.yml")
        return self.project.ansible("-i", inventory, playbook, seconds=HOURS, LLAMARIG_OVERLAY=str(OVERLAY)).ok().stdout


def admin(host: Host) -> None:
    """The user of the spec, as whoever installed the machine makes it: by key, with sudo."""
    host.exec("apt-get -q update && apt-get -qy install --no-install-recommends sudo")
    host.exec(
        "useradd -m -s /bin/bash admin && cp -r /root/.ssh /home/admin/ && chown -R admin: /home/admin/.ssh"
        " && echo 'admin ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/admin"
    )


def project_with(directory: Path, host: Host, signer: Signer, fingerprint: str) -> Project:
    """The spec as it is; what belongs to this very machine stands in a fleet.yml beside it."""
    project = Project(directory)
    shutil.copy(SPEC, project.inventory)
    (directory / "nvidia.asc").write_bytes(signer.public())
    (directory / "models").mkdir()
    write(directory / "models/tiny-qwen35-mtp.gguf", Tiny(trained_context=262144))
    own = {"connection": host.connection(), "driver": {"key": "nvidia.asc", "key-fingerprint": fingerprint}}
    (project.inventory / "fleet.yml").write_text(yaml.safe_dump({"schema-version": 1, "defaults": own}))
    return project


@pytest.fixture(scope="module")
def bench(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    ensure_commands({"gpg": "gnupg"})
    host = lab.host(NAME, fresh=True)
    admin(host)
    driver_host.kernel(host, KERNEL)
    signer = Signer(tmp_path_factory.mktemp("gpg") / "home")
    fingerprint = signer.make()
    for name, content in repository(packages(host), signer).items():
        host.write(f"{PLACE}/{name}", content)
    host.exec(f"chmod 0755 /srv {PLACE}")
    yield Bench(host, project_with(tmp_path_factory.mktemp("reference"), host, signer, fingerprint))
    archives.take_back(host)
    lab.discard(NAME)


def state(host: Host) -> str:
    """What a run could redo: packages, the toolkit, releases and models, by inode and time."""
    return host.exec(
        "dpkg-query -W; find /opt/llamarig /var/lib/llamarig/models -printf '%p %i %T@\\n' 2>/dev/null | sort"
    ).output


def test_a_check_says_all_of_it_and_touches_nothing(bench: Bench) -> None:
    before = state(bench.host)
    ran = bench.rig("apply", NAME, "--check").ok()
    kinds = {action["kind"] for action in actions_of(ran.data)}
    assert kinds >= {"package", "user", "directory", "driver", "release", "model", "file", "power"}
    assert ("toolkit" in kinds) is not bench.held()
    drivers = {action["subject"] for action in actions_of(ran.data) if action["kind"] == "driver"}
    assert drivers >= {"nvidia-driver-cuda", "nvidia-kernel-open-dkms", f"kernel {KERNEL}"}
    assert "stands in for" in ran.stderr
    assert state(bench.host) == before


def test_without_the_overlay_nothing_is_applied(bench: Bench) -> None:
    ran = bench.project.rig("apply", NAME, "--json").ended(2)
    refused = {error["what"] for error in json.loads(ran.stdout)["errors"]}
    assert any("unlocked" in each for each in refused)
    assert state(bench.host).count("nvidia-driver-cuda") == 0


def test_driver_and_toolkit_are_as_the_spec_has_them(bench: Bench) -> None:
    bench.play("tests/hosts/driver/driver.yml")
    if not bench.held():
        bench.play("tests/hosts/cuda/partial.yml")
    archives.take_back(bench.host)
    there = driver_host.packages(bench.host)
    for name in ("nvidia-driver-cuda", "nvidia-kernel-open-dkms", "libcuda1", "firmware-nvidia-gsp"):
        assert f"{name} {DRIVER}-1 hold" in there
    if not bench.held():
        assert bench.host.exec("/opt/llamarig/cuda/13.0.88/bin/nvcc --version").output.count("V13.0.88") == 1
    kinds = {action["kind"] for action in bench.left()}
    assert kinds & {"driver", "toolkit"} == set()
    assert "release" in kinds


def test_everything_up_to_the_card_is_done_and_the_card_is_what_is_missing(bench: Bench) -> None:
    release = bench.release()
    if not bench.held():
        pytest.skip(f"the store holds no release {release}: a full build of the CUDA engine leaves it there")
    bench.refused_for_want_of_a_card()

    unit = "/etc/systemd/system/llama-chat.service"
    assert bench.host.exec("readlink /opt/llamarig/current").output.strip() == f"releases/{release}"
    bench.host.exec(f"systemd-analyze verify --man=no --recursive-errors=one {unit}:llama-chat.service")
    assert "DeviceAllow=char-nvidia rw" in bench.host.exec(f"cat {unit}").output
    assert bench.host.exec("systemctl is-active llama-chat.service", check=False).output.strip() != "active"
    assert {action["kind"] for action in bench.left()} & LASTING == set()

    before = state(bench.host)
    again = bench.refused_for_want_of_a_card()
    assert {action["kind"] for action in again["actions"]} & LASTING == set()
    assert state(bench.host) == before
