"""Real reboots of a Debian 13 machine under QEMU: GRUB, two kernels of Debian's, one of which lacks its module.

Firmware, GRUB, kernels, headers, dkms, apt and the module that is loaded at boot are real. The driver is not: packages
that bear NVIDIA's names, with a module that drives nothing. There is no card, so those of a record are not compared.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab.faults import wait_for
from lab.machine_grub import GrubMachine
from lab.packages import ensure_commands
from lab.project import ROOT, Project

from llamarig.compare.reboot_tried import NOTE
from tests.support import driver_host
from tests.support.driver_module import with_module
from tests.support.driver_repository import Signer, repository
from tests.support.toolkit.reference import cuda_spec

PLACE = "/srv/nvidia"
VERSION = "610.57.04"
SECONDS = 3600.0


class Bench:
    """The machine, the project that describes it, and its kernels."""

    def __init__(self, machine: GrubMachine, project: Project, gpg: Path) -> None:
        self.machine, self.project = machine, project
        self.older, self.newer = machine.ssh("cat /srv/older /srv/newer").split()
        ensure_commands({"gpg": "gnupg"})
        signer = Signer(gpg)
        self.driver = {
            "source": "directory",
            "location": PLACE,
            "version": VERSION,
            "flavour": "open",
            "key": "stand-in.asc",
            "key-fingerprint": signer.make(),
        }
        (project.directory / "stand-in.asc").write_bytes(signer.public())
        for name, content in repository(with_module(VERSION), signer).items():
            machine.write(f"{PLACE}/{name}", content)
        project.describe(machine, cuda_spec() | {"driver": self.driver})

    def running(self) -> str:
        return self.machine.ssh("uname -r").strip()

    def boot(self) -> str:
        return self.machine.ssh("cat /proc/sys/kernel/random/boot_id")

    def decision(self) -> tuple[int, dict[str, object]]:
        """What `llamarig rebuild --check` says of a reboot."""
        ran = self.project.rig("rebuild", self.machine.name, "--check", "--json")
        decided: dict[str, object] = ran.data["hosts"][0]["reboot"]
        return ran.code, decided

    def rebuild(self) -> subprocess.Popen[str]:
        """The part of `llamarig rebuild --yes` that reboots, begun: the rest of an apply would build an engine."""
        extra = ["--extra-vars", "llamarig_reboot_allowed=true"]
        inventory = ["-i", str(self.project.inventory), "--limit", self.machine.name]
        return subprocess.Popen(
            ["ansible-playbook", "-v", *inventory, "playbooks/rebuild.yml", *extra],
            cwd=ROOT,
            env=dict(self.project.environment(), ANSIBLE_NOCOLOR="1", LC_ALL=os.environ.get("LC_ALL", "C.UTF-8")),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def rebuilt(self) -> tuple[int, str]:
        """The same to its end: status and what it printed."""
        process = self.rebuild()
        said, _ = process.communicate(timeout=SECONDS)
        return process.returncode, said


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with GrubMachine() as machine:
        yield Bench(machine, Project(tmp_path_factory.mktemp("project")), tmp_path_factory.mktemp("gpg") / "home")


@pytest.fixture(scope="module")
def refused(bench: Bench) -> tuple[int, dict[str, object]]:
    """The driver was installed by hand while the newer kernel had no headers, so dkms made its module for the older."""
    bench.machine.ssh(
        f"echo 'deb [trusted=yes] file:{PLACE}/ /' >/etc/apt/sources.list.d/cuda.list; apt-get -q update;"
        " DEBIAN_FRONTEND=noninteractive apt-get -qy install nvidia-driver-cuda nvidia-kernel-open-dkms",
        seconds=SECONDS,
    )
    return bench.decision()


@pytest.fixture(scope="module")
def mended(bench: Bench, refused: tuple[int, dict[str, object]]) -> list[str]:
    """What the driver's part of an apply found to do, and did."""
    assert refused[0] == 1
    return driver_host.play(bench.project, bench.machine, SECONDS).ok().actions


def test_a_kernel_without_its_module_is_not_booted(bench: Bench, refused: tuple[int, dict[str, object]]) -> None:
    modules = bench.machine.ssh("dkms status")
    assert f"nvidia/{VERSION}, {bench.older}, x86_64: installed" in modules
    assert bench.newer not in modules
    code, decided = refused
    assert (code, decided["verdict"], decided["kernel"]) == (1, "refused", bench.newer)
    assert f"the headers of kernel {bench.newer} are not installed, so it has no module" in str(decided["why"])

    before = bench.boot()
    status, said = bench.rebuilt()
    assert (status, bench.boot(), bench.running()) == (0, before, bench.older), said
    assert "TASK [reboot" not in said


def test_an_apply_mends_it_and_a_reboot_is_asked_for(bench: Bench, mended: list[str]) -> None:
    assert f"kernel {bench.newer}: the headers of kernel {bench.newer} are not installed, so it has no module" in mended
    assert bench.machine.ssh("dkms status").count(": installed") == 2
    code, decided = bench.decision()
    assert (code, decided["verdict"], decided["kernel"]) == (1, "ask", bench.newer)
    assert decided["needed"] == [f"kernel {bench.older} runs and {bench.newer} is installed"]


@pytest.mark.usefixtures("mended")
def test_power_that_fails_while_the_new_kernel_comes_up_boots_the_former_one(bench: Bench) -> None:
    process = bench.rebuild()
    try:
        seen = len(bench.machine.console())
        wait_for("the new kernel", lambda: f"Linux version {bench.newer}" in bench.machine.console()[seen:], 1200)
        bench.machine.cut_power()
        bench.machine.switch_on()
        said, _ = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
    assert process.returncode != 0, said
    assert f"kernel: {bench.older} runs, {bench.newer} was to boot" in said
    assert "after the reboot not all of it agrees" in said
    bench.machine.wait_booted()
    assert bench.running() == bench.older


@pytest.mark.usefixtures("mended")
def test_what_the_reboot_did_not_bring_is_made_once_more_and_no_third_time(bench: Bench) -> None:
    assert bench.decision()[1]["verdict"] == "ask", "the power may have failed by itself"
    noted = json.loads(bench.machine.ssh(f"cat {NOTE}"))
    assert (noted["kernel"], noted["tries"]) == (bench.newer, "1")
    bench.machine.ssh(f'sed -i \'s/"tries": "1"/"tries": "2"/\' {NOTE}')
    code, decided = bench.decision()
    assert (code, decided["verdict"]) == (1, "refused")
    assert "2 reboots were made for just this, the last at 20" in str(decided["why"])
    before = bench.boot()
    status, said = bench.rebuilt()
    assert (status, bench.boot()) == (0, before), said
    bench.machine.ssh(f'sed -i \'s/"tries": "2"/"tries": "1"/\' {NOTE}')


@pytest.mark.usefixtures("mended")
def test_the_next_rebuild_goes_on_and_kernel_module_and_library_agree(bench: Bench) -> None:
    before = bench.boot()
    status, said = bench.rebuilt()
    assert status == 0, said
    bench.machine.wait_booted()
    assert bench.boot() != before
    assert bench.running() == bench.newer
    assert bench.machine.ssh("cat /sys/module/nvidia/version").strip() == VERSION
    assert bench.machine.ssh("modinfo -F vermagic nvidia").split()[0] == bench.newer
    assert f"libcuda1 {VERSION}-1" in bench.machine.ssh("dpkg-query -W -f '${Package} ${Version}\\n'")
    assert f"gnulinux-{bench.newer}-advanced" in bench.machine.ssh("grub-editenv list")
    code, decided = bench.decision()
    assert (code, decided["verdict"]) == (0, "not-needed"), json.dumps(decided)
    assert bench.machine.ssh(f"ls {NOTE}", check=False).strip() == "", "a boot that was proven is no try any more"


@pytest.mark.usefixtures("mended")
def test_a_rollback_lets_the_last_good_kernel_boot_again(bench: Bench) -> None:
    assert bench.running() == bench.newer, "what the test before this one leaves"
    assert bench.older.replace("+", "\\+").replace(".", "\\.") in bench.machine.ssh(
        "cat /etc/apt/apt.conf.d/53llamarig-kernels"
    )
    told = bench.project.rig("rollback", bench.machine.name, "--kernel", "--yes", "--json").ok().data
    assert told["hosts"][0]["kernel"] == {"kernel": bench.older, "why": "", "chosen": True}
    assert bench.running() == bench.newer, "a rollback reboots nothing"
    bench.machine.ssh("systemctl reboot", check=False)
    bench.machine.wait_down()
    bench.machine.wait_booted()
    assert bench.running() == bench.older
    assert bench.machine.ssh("cat /sys/module/nvidia/version").strip() == VERSION
    assert bench.decision()[1]["needed"] == [f"kernel {bench.older} runs and {bench.newer} is installed"]
