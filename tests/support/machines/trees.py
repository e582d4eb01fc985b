"""Machines to look at: one recorded, and trees of /sys, /proc and /etc composed for cards that nobody has here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

RECORDED: dict[str, Any] = {
    "schema": 1,
    "hostname": "prov0",
    "os": {"id": "debian", "version": "13", "codename": "trixie"},
    "kernel": "6.12.117+deb13-amd64",
    "arch": "x86_64",
    "cores": 2,
    "ram-mib": 24105.56,
    "disk": {"/opt/llamarig": {"free-mib": 74014.91, "total-mib": 258019.61, "device": 70}},
    "systemd": True,
    "host-key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILNBSM+jWfpsCPVhoYBI8v4vOhYHBm5srwh44RVjDRBB root@box",
    "cards": [],
    "driver": {"version": "", "open": False, "loaded": False},
    "smi": {"cards": [], "error": "nvidia-smi is not there"},
    "servers": [{"pid": 275, "executable": "/opt/x/bin/llama-server", "unit": "llama-chat.service", "ports": [18080]}],
    "ports": [22, 18080],
}
"""Recorded: rig_look in a Debian 13 container where a server runs; the kernel's name is that of Debian's own."""

BLACKWELL, ADA = "GPU-5d1f2f0a-6d0c-4b6e-9a55-0123456789ab", "GPU-aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"

SMI = [
    {
        "name": "NVIDIA RTX PRO 4000 Blackwell SFF Edition", "uuid": BLACKWELL, "pci.bus_id": "00000000:01:00.0",
        "memory.total": "24467", "power.default_limit": "70.00", "power.limit": "60.00", "display_active": "Disabled",
    },
    {
        "name": "NVIDIA RTX 2000 Ada Generation", "uuid": ADA, "pci.bus_id": "00000000:02:00.0",
        "memory.total": "15996", "power.default_limit": "70.00", "power.limit": "70.00", "display_active": "Enabled",
    },
]  # fmt: skip
"""Composed: the form that ``nvidia-smi --query-gpu --format=csv,noheader,nounits`` prints, names and sizes of the
reference stack."""


def tree(root: Path, cards: dict[str, str], *, driver: str = "", version: str = "", pci_ids: str = "") -> Path:
    """Compose the files of a machine with ``cards`` (PCI address -> device id), held by a kernel driver or by none."""

    def put(path: str, text: str) -> None:
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    put("etc/os-release", 'ID=debian\nVERSION_ID="13"\nVERSION_CODENAME=trixie\n')
    put("proc/meminfo", "MemTotal:       65536000 kB\n")
    put("proc/sys/kernel/hostname", "atelier\n")
    put("proc/sys/kernel/osrelease", "6.12.117+deb13-amd64\n")
    listen = (
        "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 77 1 0 100 0 0 10 0"
    )
    put("proc/net/tcp", f"  sl  local_address rem_address\n{listen}\n")
    for address, device in cards.items():
        place = f"sys/bus/pci/devices/{address}"
        for key, value in (("vendor", "0x10de"), ("class", "0x030000"), ("device", f"0x{device}")):
            put(f"{place}/{key}", f"{value}\n")
        if driver:
            (root / "sys/bus/pci/drivers" / driver).mkdir(parents=True, exist_ok=True)
            (root / place / "driver").symlink_to(f"../../drivers/{driver}")
    if version:
        put("sys/module/nvidia/version", f"{version}\n")
        kind = "NVIDIA UNIX Open Kernel Module for x86_64"
        put("proc/driver/nvidia/version", f"NVRM version: {kind}  {version}  Release Build\n")
    if pci_ids:
        put("usr/share/misc/pci.ids", pci_ids)
    return root
