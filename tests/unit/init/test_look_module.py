"""rig_look reads composed trees of /sys, /proc and /etc."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.machines.trees import ADA, tree
from tests.support.observe.load import module

PCI = (
    "# list\n8086  Intel\n\t2c33  Not this one\n"
    "10de  NVIDIA Corporation\n\t2c33  GB203GL [RTX PRO 4000 Blackwell SFF Edition]\n\t\t1 2  sub\n"
)


def test_cards_drivers_and_names_are_read_from_the_bus(tmp_path: Path) -> None:
    rig_look = module("rig_look")
    tree(tmp_path, {"0000:02:00.0": "28b0", "0000:01:00.0": "2c33"}, driver="nouveau", pci_ids=PCI)
    seen = rig_look.look(str(tmp_path))
    assert [(card["bus-id"], card["device"], card["driver"], card["listed"]) for card in seen["cards"]] == [
        ("0000:01:00.0", "2c33", "nouveau", "GB203GL [RTX PRO 4000 Blackwell SFF Edition]"),
        ("0000:02:00.0", "28b0", "nouveau", ""),
    ]
    assert seen["driver"] == {"version": "", "open": False, "loaded": False}
    assert seen["hostname"] == "atelier"
    assert seen["ram-mib"] == 64000.0
    assert seen["ports"] == [8080]


def test_a_running_open_driver_is_told_with_its_version(tmp_path: Path) -> None:
    rig_look = module("rig_look")
    tree(tmp_path, {"0000:01:00.0": "2c33"}, driver="nvidia", version="610.57.04")
    assert rig_look.driver(str(tmp_path)) == {"version": "610.57.04", "open": True, "loaded": True}


def test_running_servers_are_told_with_unit_and_port(tmp_path: Path) -> None:
    rig_look = module("rig_look")
    tree(tmp_path, {})
    for pid, argv in (("812", b"/opt/x/llama-server\0-m\0a\0"), ("9", b"python3\0llama-server.py\0")):
        place = tmp_path / "proc" / pid
        (place / "fd").mkdir(parents=True)
        (place / "cmdline").write_bytes(argv)
        (place / "cgroup").write_text("0::/system.slice/llama-chat.service\n")
        (place / "fd" / "3").symlink_to("socket:[77]")
    assert rig_look.servers(str(tmp_path)) == [
        {"pid": 812, "executable": "/opt/x/llama-server", "unit": "llama-chat.service", "ports": [8080]}
    ]


def test_nvidia_smi_is_asked_once_and_read_by_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for nvidia-smi; the row is composed in the form of its CSV."""
    rig_look = module("rig_look")
    tool = tmp_path / "nvidia-smi"
    tool.write_text(
        '#!/bin/sh\nprintf \'%s\\n\' "$@" > "$(dirname "$0")/asked"\n'
        f"echo 'NVIDIA GeForce RTX 4090, {ADA}, 00000000:01:00.0, 24564, 450.00, 350.00, Disabled'\n"
        "echo 'a row, with too few'\n"
    )
    tool.chmod(0o755)
    monkeypatch.setattr(rig_look, "PATH", f"{tmp_path}:/usr/bin:/bin")
    seen = rig_look.smi()
    assert seen["error"] == ""
    assert [card["name"] for card in seen["cards"]] == ["NVIDIA GeForce RTX 4090"]
    assert seen["cards"][0]["power.limit"] == "350.00"
    assert (tmp_path / "asked").read_text().split()[1] == "--format=csv,noheader,nounits"


@pytest.mark.parametrize("body", ["exit 9", "echo mismatch >&2; exit 18"])
def test_a_broken_nvidia_smi_is_told_in_its_own_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str
) -> None:
    rig_look = module("rig_look")
    tool = tmp_path / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\n{body}\n")
    tool.chmod(0o755)
    monkeypatch.setattr(rig_look, "PATH", f"{tmp_path}:/usr/bin:/bin")
    seen = rig_look.smi()
    assert seen["cards"] == []
    assert ("mismatch" in seen["error"]) is ("mismatch" in body)


def test_this_very_machine_can_be_looked_at() -> None:
    rig_look = module("rig_look")
    seen = rig_look.capped(rig_look.look())
    assert seen["ram-mib"] > 0
    assert seen["os"]["id"]
