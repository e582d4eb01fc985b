"""What rig_doctor collects on a machine: this one, and made-up trees of files."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from llamarig.prove.doctor import examine
from llamarig.prove.doctor.bundle import read_bundle
from tests.support.observe.load import module, part


@pytest.fixture(scope="module")
def rig_bundle() -> Any:
    module("rig_doctor")
    return part("rig_bundle")


def test_this_machine_is_read_whatever_it_is(rig_bundle: Any) -> None:
    collected = json.loads(json.dumps(rig_bundle.collect()))
    assert collected["parts"]["uname"]["text"].strip() == subprocess.check_output(["uname", "-r"], text=True).strip()
    assert {"dkms-status", "nvidia-smi", "kernel-log", "units", "packages"} <= set(collected["parts"])
    assert isinstance(examine(read_bundle(collected)), list)


def test_a_tool_that_is_not_there_is_part_of_the_answer(rig_bundle: Any) -> None:
    assert rig_bundle.said(["no-such-tool", "-x"]) == {"status": 127, "text": "no-such-tool is not there"}


def test_a_tool_that_hangs_is_left(rig_bundle: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rig_bundle, "SECONDS", 0.2)
    assert rig_bundle.said(["sleep", "60"])["status"] == 124


def test_what_a_tool_floods_is_cut(rig_bundle: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rig_bundle, "BYTES", 1000)
    assert len(rig_bundle.said(["seq", "100000"])["text"]) == 1000


def test_kernels_links_and_nodes_of_a_tree(rig_bundle: Any, tmp_path: Path) -> None:
    for version, built in (("6.12.96", True), ("6.12.100", False)):
        (tmp_path / "boot").mkdir(exist_ok=True)
        (tmp_path / f"boot/vmlinuz-{version}").touch()
        home = tmp_path / f"lib/modules/{version}"
        (home / "updates/dkms").mkdir(parents=True)
        if built:
            (home / "build").mkdir()
            (home / "updates/dkms/nvidia.ko.xz").touch()
    kernels = rig_bundle.kernels(str(tmp_path))
    assert [(each["version"], each["headers"], len(each["modules"])) for each in kernels] == [
        ("6.12.100", False, 0),
        ("6.12.96", True, 1),
    ]
    slot = tmp_path / "sys/bus/pci/devices/0000:01:00.0"
    slot.mkdir(parents=True)
    for name, value in (("vendor", "0x10de"), ("class", "0x030000"), ("device", "0x2b85"), ("current_link_width", "4"),
                        ("max_link_width", "16")):  # fmt: skip
        (slot / name).write_text(value + "\n")
    (slot / "driver").symlink_to("/sys/bus/pci/drivers/nouveau")
    (link,) = rig_bundle.links(str(tmp_path))
    assert (link["driver"], link["current_link_width"], link["device"]) == ("nouveau", "4", "0x2b85")
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/nvidia0").touch()
    (tmp_path / "dev/null").touch()
    assert rig_bundle.nodes(str(tmp_path)) == ["/dev/nvidia0"]
