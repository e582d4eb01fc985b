"""The driver read from trees composed after the real files: dpkg's status, the tree of dkms 3.2.2, UEFI variables."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.observe.load import part

nvidia = part("rig_nvidia")

STATUS = """Package: libcuda1
Status: hold ok installed
Architecture: amd64
Version: 550.163.01-2

Package: libcuda1
Status: install ok installed
Architecture: i386
Version: 550.163.01-2

Package: nvidia-open-kernel-dkms
Status: install ok half-configured
Architecture: amd64
Version: 550.163.01-2
Conffiles:
 /etc/x: y

Package: nvidia-kernel-common
Status: install ok installed
Architecture: amd64
Version: 20240109+1

Package: nvidia-smi
Status: deinstall ok config-files
Architecture: amd64
Version: 535.1-1

Package: broken
Status: install reinstreq half-installed
Architecture: amd64
Version: 1
"""
KERNEL = "6.12.117+deb13-amd64"
OLDER = "6.12.96+deb13-amd64"
OWN, APART = ["libcuda1", "nvidia-open*", "nvidia-kernel-*", "nvidia-smi"], ["nvidia-kernel-common"]


def write(root: Path, path: str, content: bytes | str = b"") -> Path:
    place = root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content.encode() if isinstance(content, str) else content)
    return place


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path, "var/lib/dpkg/status", STATUS)
    for kernel in (KERNEL, OLDER):
        write(tmp_path, f"boot/vmlinuz-{kernel}")
        write(tmp_path, f"usr/src/linux-headers-{kernel}/Makefile")
        (tmp_path / f"lib/modules/{kernel}").mkdir(parents=True)
        (tmp_path / f"lib/modules/{kernel}/build").symlink_to(f"/usr/src/linux-headers-{kernel}")
    base = tmp_path / "var/lib/dkms/nvidia-current/550.163.01"
    base.mkdir(parents=True)
    (base / "source").symlink_to("/usr/src/nvidia-current-550.163.01")
    return tmp_path


def built(root: Path, kernel: str, *, linked: bool = True, copied: bool = True) -> None:
    """As dkms leaves a build: the module, the link that says it is installed, the copy that the kernel loads."""
    base = root / "var/lib/dkms/nvidia-current"
    write(root, f"var/lib/dkms/nvidia-current/550.163.01/{kernel}/x86_64/module/nvidia-current.ko.xz")
    if linked:
        (base / f"kernel-{kernel}-x86_64").symlink_to(f"550.163.01/{kernel}/x86_64")
    if copied:
        write(root, f"lib/modules/{kernel}/updates/dkms/nvidia-current.ko.xz")


def test_packages_that_carry_the_version_are_listed(root: Path) -> None:
    found = nvidia.packages([], OWN, APART, str(root))
    assert found == {
        "libcuda1": {"version": "550.163.01-2", "state": "installed", "held": True},
        "libcuda1:i386": {"version": "550.163.01-2", "state": "installed", "held": False},
        "nvidia-open-kernel-dkms": {"version": "550.163.01-2", "state": "half-configured", "held": False},
    }


def meta(name: str, status: str = "install ok installed", version: str = "6.12.117-1") -> str:
    return f"\nPackage: {name}\nStatus: {status}\nArchitecture: amd64\nVersion: {version}\n"


@pytest.mark.parametrize(
    ("installed", "found"),
    [
        ([meta("linux-image-amd64")], {"amd64": False}),
        ([meta("linux-image-amd64"), meta("linux-headers-amd64")], {"amd64": True}),
        ([meta("linux-image-amd64"), meta("linux-headers-cloud-amd64")], {"amd64": False}),
        ([meta("linux-image-cloud-amd64"), meta("linux-image-rt-amd64")], {"cloud-amd64": False, "rt-amd64": False}),
        ([meta("linux-image-generic-hwe-24.04")], {"generic-hwe-24.04": False}),
        ([meta("linux-image-amd64"), meta("linux-headers-amd64", "deinstall ok config-files")], {"amd64": False}),
        ([meta("linux-image-amd64", "deinstall ok config-files")], {}),
        ([meta("linux-image-amd64-dbg"), meta("linux-image-6.12.117+deb13-amd64"), meta("linux-image-arm64")], {}),
    ],
)
def test_what_brings_kernels_is_seen_with_what_brings_their_headers(
    root: Path, installed: list[str], found: dict[str, bool]
) -> None:
    write(root, "var/lib/dpkg/status", "".join([STATUS, *installed]))
    seen = nvidia.flavours(str(root))
    assert {name: entry["headers"] for name, entry in seen.items()} == found
    assert all(entry["version"] == "6.12.117-1" for entry in seen.values())
    assert nvidia.observe({}, str(root))["flavours"] == seen


def test_what_dpkg_has_not_finished_is_named(root: Path) -> None:
    assert nvidia.half_done(str(root)) == ["nvidia-open-kernel-dkms", "broken"]


def test_what_a_killed_dpkg_left_in_its_journal_is_newer_than_its_table(root: Path) -> None:
    place = "var/lib/dpkg/updates"
    stanza = "Package: {}\nStatus: install ok {}\nArchitecture: amd64\nVersion: 550.163.01-2\n"
    write(root, f"{place}/0001", stanza.format("libcuda1", "half-configured"))
    write(root, f"{place}/0000", stanza.format("libcuda1", "unpacked"))
    write(root, f"{place}/tmp.i", stanza.format("others", "half-installed"))
    assert nvidia.half_done(str(root)) == ["libcuda1", "nvidia-open-kernel-dkms", "broken"]
    assert nvidia.packages(["libcuda1"], [], [], str(root))["libcuda1"]["state"] == "half-configured"
    assert [Path(path).name for path in nvidia.interrupted(str(root))] == ["0000", "0001"]


def test_dkms_says_added_built_and_installed(root: Path) -> None:
    assert nvidia.dkms(KERNEL, str(root)) == {"nvidia-current/550.163.01": "added"}
    built(root, KERNEL, linked=False)
    assert nvidia.dkms(KERNEL, str(root)) == {"nvidia-current/550.163.01": "built"}
    built(root, OLDER)
    assert nvidia.dkms(OLDER, str(root)) == {"nvidia-current/550.163.01": "installed"}


def test_a_link_without_the_module_that_boots_is_no_installation(root: Path) -> None:
    built(root, KERNEL, copied=False)
    assert nvidia.dkms(KERNEL, str(root)) == {"nvidia-current/550.163.01": "built"}


def test_a_link_to_another_version_is_no_installation(root: Path) -> None:
    built(root, KERNEL)
    link = root / f"var/lib/dkms/nvidia-current/kernel-{KERNEL}-x86_64"
    link.unlink()
    link.symlink_to(f"535.1/{KERNEL}/x86_64")
    assert nvidia.dkms(KERNEL, str(root)) == {"nvidia-current/550.163.01": "built"}


def test_headers_whose_source_is_gone_are_none(root: Path) -> None:
    assert nvidia.headers(KERNEL, str(root)) is True
    (root / f"usr/src/linux-headers-{KERNEL}/Makefile").unlink()
    assert nvidia.headers(KERNEL, str(root)) is False
    assert nvidia.headers("6.13-amd64", str(root)) is False


def test_an_initramfs_older_than_the_blacklist_is_named(root: Path) -> None:
    files = ["/etc/modprobe.d/llamarig-nouveau.conf", "/etc/apt/preferences.d/llamarig-nvidia"]
    image = write(root, f"boot/initrd.img-{KERNEL}")
    listed, other = write(root, files[0][1:]), write(root, files[1][1:])
    os.utime(image, ns=(10**18, 2 * 10**18))
    os.utime(listed, ns=(10**18, 10**18))
    os.utime(other, ns=(3 * 10**18, 3 * 10**18))
    assert nvidia.old_initramfs(files, str(root)) == []
    os.utime(listed, ns=(3 * 10**18, 3 * 10**18))
    assert nvidia.old_initramfs(files, str(root)) == [KERNEL]


def test_a_masked_persistence_daemon_is_seen(root: Path) -> None:
    place = root / nvidia.PERSISTENCE.lstrip("/")
    assert nvidia.persistence_masked(str(root)) is False
    place.parent.mkdir(parents=True)
    place.symlink_to("/usr/lib/systemd/system/nvidia-persistenced.service")
    assert nvidia.persistence_masked(str(root)) is False
    place.unlink()
    place.symlink_to("/dev/null")
    assert nvidia.observe({}, str(root))["persistence-masked"] is True


def test_a_driver_that_no_package_owns_is_a_run_file(root: Path) -> None:
    own = nvidia.packages([], OWN, APART, str(root))
    assert nvidia.run_file({}, str(root)) is False
    write(root, "sys/module/nvidia/version", "570.124.06\n")
    write(root, "proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.124.06\n")
    assert nvidia.loaded(str(root)) == ("570.124.06", True)
    assert nvidia.run_file({}, str(root)) is True
    assert nvidia.run_file(own, str(root)) is False


def test_nouveau_is_seen_on_a_card(root: Path) -> None:
    slot = root / "sys/bus/pci/devices/0000:01:00.0"
    write(root, "sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n")
    assert nvidia.nouveau(str(root)) == []
    (slot / "driver").symlink_to("../../../bus/pci/drivers/nouveau")
    assert nvidia.nouveau(str(root)) == ["0000:01:00.0"]


def test_everything_at_once_on_a_bare_tree(tmp_path: Path) -> None:
    seen: dict[str, Any] = nvidia.observe({"own": OWN, "unit": "x.service"}, str(tmp_path))
    assert seen["packages"] == {}
    assert seen["kernels"] == {}
    assert seen["loaded"] == ""
    assert seen["enabled"] is False
    assert seen["secure-boot"] is None
