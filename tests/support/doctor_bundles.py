"""Bundles of machines in trouble. Their lines are composed after public reports, which stand beside each."""

from __future__ import annotations

import copy
from typing import Any

KERNEL = "6.12.100+deb13-amd64"
OLDER = "6.12.96+deb13-amd64"
BLACKWELL, ADA, PASCAL = "0x2b85", "0x28b0", "0x1b06"
MODULE = f"/lib/modules/{KERNEL}/updates/dkms/nvidia.ko.xz"

HEALTHY: dict[str, Any] = {
    "schema": 1,
    "parts": {
        "uname": {"status": 0, "text": f"{KERNEL}\n"},
        "driver-version": {
            "status": 0,
            "text": "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  610.57.04  Release Build\n",
        },
        "module-version": {"status": 0, "text": "610.57.04\n"},
        "modules": {"status": 0, "text": "nvidia_uvm 1 0 - Live 0x0\nnvidia 2 1 nvidia_uvm, Live 0x0"},
        "dkms-status": {"status": 0, "text": f"nvidia/610.57.04, {KERNEL}, x86_64: installed\n"},
        "packages": {
            "status": 0,
            "text": (
                "ii  nvidia-open 610.57.04-1\nii  nvidia-driver-cuda 610.57.04-1\nii  libnvidia-compute 610.57.04-1\n"
            ),
        },
        "libraries": {"status": 0, "text": "\tlibcuda.so.1 (libc6,x86-64) => /lib/x86_64-linux-gnu/libcuda.so.1"},
        "nvidia-smi": {"status": 0, "text": "NVIDIA-SMI 610.57.04\n"},
        "nvidia-smi-cards": {
            "status": 0,
            "text": (
                "index, uuid, pci.bus_id, name, power.limit [W], power.min_limit [W], power.max_limit [W], "
                "persistence_mode\n"
                "0, GPU-a, 00000000:01:00.0, NVIDIA GeForce RTX 5090, 450.00, 400.00, 600.00, Enabled\n"
            ),
        },
        "secure-boot": {"status": 0, "text": "SecureBoot disabled\n"},
        "dpkg-audit": {"status": 0, "text": ""},
        "units": {"status": 0, "text": "Id=llama-chat.service\nActiveState=active\nResult=success\nNRestarts=0\n"},
        "kernel-log": {"status": 0, "text": "[    3.1] nvidia: loading out-of-tree module taints kernel."},
        "server-log": {"status": 0, "text": "main: server is listening on http://127.0.0.1:8080"},
    },
    "kernels": [
        {
            "version": KERNEL,
            "headers": True,
            "modules": [MODULE],
            "info": {"version": "610.57.04", "license": "Dual MIT/GPL", "sig_key": "AA:BB:CC"},
        }
    ],
    "links": [
        {
            "bus-id": "0000:01:00.0",
            "device": BLACKWELL,
            "driver": "nvidia",
            "current_link_width": "16",
            "max_link_width": "16",
            "current_link_speed": "2.5 GT/s PCIe",
            "max_link_speed": "32.0 GT/s PCIe",
        }
    ],
    "nodes": ["/dev/nvidia0", "/dev/nvidia-uvm", "/dev/nvidiactl"],
}
"""A machine without fault: an idle card lowers its link's speed, which is none."""


def bundle(**parts: str) -> dict[str, Any]:
    """The healthy machine with other texts of some parts."""
    made = copy.deepcopy(HEALTHY)
    for name, text in parts.items():
        made["parts"][name.replace("_", "-")] = {"status": 0, "text": text}
    return made


def without_driver(**parts: str) -> dict[str, Any]:
    """No module is loaded."""
    made = bundle(module_version="", driver_version="", modules="", **parts)
    made["nodes"] = []
    made["links"][0]["driver"] = ""
    return made
