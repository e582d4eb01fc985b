"""Installing, building, and what is said when a kernel stays without a module. The tools are stand-ins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.driver_cases import MAKE_LOG, driver
from tests.support.observe.load import module, part

rig_driver = module("rig_driver")
nvidia = part("rig_nvidia")
apt = part("rig_apt")
KERNEL = "6.12.117+deb13-amd64"
PLAN = {"pins": ["libcuda1=590.48.01-1"], "headers": [f"linux-headers-{KERNEL}"], "drop": ["cuda-keyring"]}


class Tools:
    """Keeps what is asked, and answers by the words of a command."""

    def __init__(self, answers: dict[str, tuple[int, str]]) -> None:
        self.asked: list[str] = []
        self.answers = answers

    def __call__(self, command: list[str], _timeout: int = 0) -> tuple[int, str]:
        line = " ".join(command)
        self.asked.append(line)
        return next((answer for words, answer in self.answers.items() if words in line), (0, ""))


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the host has, to be changed by a test."""
    seen: dict[str, Any] = {"half": [], "dkms": {"nvidia/590.48.01": "installed"}, "packages": {}}
    monkeypatch.setattr(nvidia, "half_done", lambda: seen["half"])
    monkeypatch.setattr(nvidia, "interrupted", list)
    monkeypatch.setattr(nvidia, "bootable", lambda: [KERNEL])
    monkeypatch.setattr(nvidia, "dkms", lambda _kernel: seen["dkms"])
    monkeypatch.setattr(nvidia, "packages", lambda *_: seen["packages"])
    return seen


def tools(monkeypatch: pytest.MonkeyPatch, **answers: tuple[int, str]) -> Tools:
    made = Tools({words.replace("_", " "): answer for words, answer in answers.items()})
    monkeypatch.setattr(apt, "call", made)
    return made


SITE = [{"path": "/etc/apt/sources.list.d/llamarig-mirror.sources", "content": "URIs: http://192.0.2.5/debian\n"}]
OWN = {"path": "/etc/apt/sources.list.d/llamarig-nvidia.sources", "content": "URIs: http://192.0.2.5/driver\n"}


@pytest.mark.usefixtures("host")
def test_at_a_site_apt_reads_its_list_and_the_drivers_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plan = part("rig_driver_plan")
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/debian.sources").write_text("URIs: http://unreachable.invalid/\n")
    monkeypatch.setattr(plan, "SOURCES", str(tmp_path / "etc"))
    monkeypatch.setattr(plan, "STATE", str(tmp_path))
    # source_file() knows the driver's list by the directory that it is in.
    own = OWN | {"path": str(tmp_path / "etc/llamarig-nvidia.sources")}
    read: list[dict[str, str]] = []

    def call(command: list[str], _timeout: int = 0) -> tuple[int, str]:
        given = [word.partition("=") for word in command if word.startswith("Dir::Etc::")]
        if command[0] == "apt-get":
            assert {key: value for key, _, value in given}["Dir::Etc::sourcelist"] == "/dev/null"
            [parts] = [Path(value) for key, _, value in given if key == "Dir::Etc::sourceparts"]
            read.append({path.name: path.read_text() for path in parts.iterdir()})
        return 0, ""

    monkeypatch.setattr(apt, "call", call)
    assert rig_driver.install(driver() | {"files": [own], "stale": []}, PLAN, SITE, 10) is True
    # The lists are fetched, then each of the two transactions is simulated and carried out.
    both = {"llamarig-mirror.sources": SITE[0]["content"], "llamarig-nvidia.sources": OWN["content"]}
    assert read == [both] * 5
    assert [path.name for path in tmp_path.iterdir()] == ["etc"]


@pytest.mark.usefixtures("host")
def test_without_a_site_apt_reads_the_hosts_own_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    made = tools(monkeypatch)
    rig_driver.install(driver(), PLAN, [], 10)
    assert not any("Dir::Etc" in line for line in made.asked)


@pytest.mark.usefixtures("host")
def test_headers_come_first_and_each_step_is_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    made = tools(monkeypatch)
    assert rig_driver.install(driver(), PLAN, [], 10) is True
    installs = [line for line in made.asked if " install " in line]
    assert [" -s " in line for line in installs] == [True, False, True, False]
    assert installs[1].endswith(f"-- linux-headers-{KERNEL}")
    assert installs[3].endswith("-- libcuda1=590.48.01-1 cuda-keyring-")


def test_what_is_in_place_is_only_held(monkeypatch: pytest.MonkeyPatch, host: dict[str, Any]) -> None:
    made = tools(monkeypatch)
    empty: dict[str, list[str]] = {"pins": [], "headers": [], "drop": []}
    host["packages"] = {"libcuda1": {"version": "590.48.01-1", "state": "installed", "held": False}}
    assert rig_driver.install(driver(), empty, [], 10) is True
    assert made.asked == ["apt-mark hold -- libcuda1"]
    host["packages"]["libcuda1"]["held"] = True
    assert rig_driver.install(driver(), empty, [], 10) is False


def test_a_simulation_that_takes_more_ends_it_before_the_transaction(
    monkeypatch: pytest.MonkeyPatch, host: dict[str, Any]
) -> None:
    assert host["half"] == []
    made = tools(monkeypatch, **{"-s_install_--_libcuda1": (0, "Remv openssh-server [1:10]\n")})
    with pytest.raises(apt.FailedError, match="openssh-server"):
        rig_driver.install(driver(), PLAN, [], 10)
    assert not any("-y install -- libcuda1" in line for line in made.asked)


def test_a_half_configured_package_of_others_is_finished_first(
    monkeypatch: pytest.MonkeyPatch, host: dict[str, Any]
) -> None:
    made = tools(monkeypatch, **{"dpkg_--configure": (1, "dpkg: error processing package grub-pc (--configure):")})
    host["half"] = ["nvidia-open-kernel-dkms"]
    rig_driver.install(driver(), PLAN, [], 10)
    assert not any("--configure" in line for line in made.asked)
    host["half"] = ["grub-pc"]
    with pytest.raises(apt.FailedError, match="dpkg cannot finish with grub-pc"):
        rig_driver.install(driver(), PLAN, [], 10)


def test_a_journal_of_a_killed_dpkg_is_taken_in_whatever_is_half_done(
    monkeypatch: pytest.MonkeyPatch, host: dict[str, Any]
) -> None:
    made = tools(monkeypatch, **{"dpkg_--configure": (1, "dpkg: error processing package nvidia-open-kernel-dkms")})
    host["half"] = ["nvidia-open-kernel-dkms"]
    monkeypatch.setattr(rig_driver.rig_nvidia, "interrupted", lambda: ["/var/lib/dpkg/updates/0000"])
    rig_driver.install(driver(), PLAN, [], 10)
    assert made.asked[0] == "dpkg --configure -a"


def test_an_apt_that_runs_is_waited_for_and_named(monkeypatch: pytest.MonkeyPatch, host: dict[str, Any]) -> None:
    assert host["half"] == []
    held = "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 812 (apt-get)\n"
    monkeypatch.setattr(rig_driver.time, "sleep", lambda _: None)
    tools(monkeypatch, update=(100, held))
    with pytest.raises(apt.FailedError, match="held by process 812"):
        rig_driver.install(driver(), PLAN, [], 0)


def test_a_module_that_does_not_build_is_told_with_the_compilers_words(
    monkeypatch: pytest.MonkeyPatch, host: dict[str, Any], tmp_path: Path
) -> None:
    place = tmp_path / "nvidia-current-open/590.48.01/build"
    place.mkdir(parents=True)
    (place / "make.log").write_text(MAKE_LOG)
    why = part("rig_make_log").why_not_built
    monkeypatch.setattr(rig_driver.rig_make_log, "why_not_built", lambda module, kernel: why(module, kernel, tmp_path))
    host["dkms"] = {"nvidia-current-open/590.48.01": "added"}
    made = tools(monkeypatch)
    with pytest.raises(apt.FailedError) as caught:
        rig_driver.build(driver())
    said = str(caught.value)
    assert f"kernel {KERNEL} has no module 590.48.01: nvidia-current-open/590.48.01 is only added" in said
    assert "too few arguments to function 'pci_resize_resource'" in said
    assert "do not reboot" in said
    assert made.asked == [f"dkms autoinstall -k {KERNEL}"]


def test_nothing_is_built_where_every_kernel_has_its_module(
    monkeypatch: pytest.MonkeyPatch, host: dict[str, Any]
) -> None:
    assert host["dkms"]
    made = tools(monkeypatch)
    assert rig_driver.build(driver()) is False
    assert made.asked == []


def test_an_old_initramfs_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    made = tools(monkeypatch)
    files = {"files": [{"path": "/etc/modprobe.d/x.conf"}]}
    monkeypatch.setattr(nvidia, "old_initramfs", lambda _: [KERNEL])
    assert rig_driver.initramfs(files) is True
    assert made.asked == [f"update-initramfs -u -k {KERNEL}"]
    tools(monkeypatch, **{"update-initramfs": (1, "E: no space left\n")})
    with pytest.raises(apt.FailedError, match="cannot be made anew"):
        rig_driver.initramfs(files)
