"""What system a host is, read from trees that were composed after the real files' formats."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.observe.load import part

system = part("rig_system")

STATUS = """Package: cmake
Status: install ok installed
Priority: optional
Architecture: amd64
Version: 3.31.6-2
Description: Package: decoy
 Package: ccache

Package: ccache
Status: deinstall ok config-files
Architecture: amd64
Version: 4.11.2-1

Package: half
Status: install ok half-configured
Architecture: amd64
Version: 1

Package: held
Status: hold ok installed
Architecture: all
Version: 2:1.0~rc1-1+b2

Package: both
Status: install ok installed
Architecture: amd64
Version: 7

Package: both
Status: deinstall ok config-files
Architecture: i386
Version: 6
"""


@pytest.fixture
def root(tmp_path: Path) -> str:
    (tmp_path / "var/lib/dpkg").mkdir(parents=True)
    (tmp_path / "var/lib/dpkg/status").write_text(STATUS)
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/passwd").write_text(
        "root:x:0:0:root:/root:/bin/bash\nllama-chat:x:990:989::/nonexistent:/usr/sbin/nologin\nbroken:x\nbad:x:no:1::/:/\n"
    )
    (tmp_path / "etc/group").write_text(
        "root:x:0:\nllama-chat:x:989:\nvideo:x:44:llama-chat,other\nrender:x:45:other\nbad\n"
    )
    (tmp_path / "etc/shadow").write_text("root:$y$hash:1::::::\nllama-chat:!:1::::::\n")
    return str(tmp_path)


def test_only_wholly_installed_packages_have_a_version(root: str) -> None:
    names = ["cmake", "ccache", "half", "held", "both", "never-heard-of"]
    assert system.packages(names, root) == {
        "cmake": "3.31.6-2",
        "ccache": None,
        "half": None,
        "held": "2:1.0~rc1-1+b2",
        "both": "7",
        "never-heard-of": None,
    }


def test_a_host_without_dpkg_has_no_packages(tmp_path: Path) -> None:
    assert system.packages(["cmake"], str(tmp_path)) == {"cmake": None}


def test_users_with_their_groups_and_lock(root: str) -> None:
    found = system.users(["llama-chat", "root", "gone", "broken", "bad"], root)
    assert found["llama-chat"] == {
        "uid": 990,
        "group": "llama-chat",
        "home": "/nonexistent",
        "shell": "/usr/sbin/nologin",
        "groups": ["video"],
        "locked": True,
    }
    assert found["root"]["locked"] is False
    assert found["gone"] is found["broken"] is found["bad"] is None


def test_the_distribution_is_read_through_its_link(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "usr/lib").mkdir(parents=True)
    (tmp_path / "usr/lib/os-release").write_text('ID=debian\nVERSION_ID="13"\nVERSION_CODENAME=trixie\n#ID=x\n')
    (tmp_path / "etc/os-release").symlink_to("../usr/lib/os-release")
    assert system.os_release(str(tmp_path)) == {"id": "debian", "version": "13", "codename": "trixie"}


def test_a_host_that_says_nothing_is_described_as_empty(tmp_path: Path) -> None:
    root = str(tmp_path)
    assert system.os_release(root) == {"id": "", "version": "", "codename": ""}
    assert system.ram_mib(root) == 0.0
    assert system.gpus(root) == []
    assert system.boot_id(root) == ""


def test_memory_is_in_mib(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemTotal:       24684092 kB\nMemFree: 1 kB\n")
    assert system.ram_mib(str(tmp_path)) == 24105.56


def test_the_disk_of_a_path_that_is_not_there_yet_is_that_of_its_parent(tmp_path: Path) -> None:
    found = system.disk(["/opt/llamarig/deep/below"], str(tmp_path))["/opt/llamarig/deep/below"]
    assert found["device"] == tmp_path.stat().st_dev
    assert 0 < found["free-mib"] <= found["total-mib"]


def test_cards_are_found_without_a_driver_and_named_with_one(tmp_path: Path) -> None:
    """Composed after sysfs and /proc/driver/nvidia/gpus/*/information of the open driver."""
    for slot, vendor, family in (
        ("0000:01:00.0", "0x10de", "0x030000"),
        ("0000:01:00.1", "0x10de", "0x040300"),
        ("0000:02:00.0", "0x10de", "0x030200"),
        ("0000:00:02.0", "0x8086", "0x030000"),
    ):
        place = tmp_path / "sys/bus/pci/devices" / slot
        place.mkdir(parents=True)
        for name, text in (("vendor", vendor), ("class", family), ("device", "0x2c33")):
            (place / name).write_text(text + "\n")
    place = tmp_path / "proc/driver/nvidia/gpus/0000:02:00.0"
    place.mkdir(parents=True)
    (place / "information").write_text(
        "Model: \t\t NVIDIA RTX 2000 Ada\nGPU UUID: \t GPU-1\nBus Location: 0000:02:00.0\n"
    )
    assert system.gpus(str(tmp_path)) == [
        {"bus-id": "0000:01:00.0", "device": "0x2c33"},
        {"bus-id": "0000:02:00.0", "device": "0x2c33", "model": "NVIDIA RTX 2000 Ada", "uuid": "GPU-1"},
    ]


def test_words_of_systemd_are_split_as_it_quotes_them() -> None:
    assert system.words('/etc/a.conf "/etc/with space.conf"') == ["/etc/a.conf", "/etc/with space.conf"]
    assert system.words('/etc/unbalanced" x') == ['/etc/unbalanced"', "x"]
