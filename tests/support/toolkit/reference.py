"""The reference engine for a Blackwell and an Ada card, with the toolkit of 13.0 from wheels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lab import Host
from lab.project import Project, demo_spec

VERSION = "13.0.88"
PREFIX = f"/opt/llamarig/cuda/{VERSION}"
HOURS = 4 * 3600.0
"""What a play may take: the whole engine is compiled in over one."""
WHEELS = {
    "nvidia-cuda-nvcc==13.0.88": "56fe502eb77625a12f25172caa3cdddb4e4c8ba2c8c17dba44b164761b380f03",
    "nvidia-nvvm==13.0.88": "c5f41ffeb6466944a026dfa5317d7d85355c119bbec279205d22f1869d1054e0",
    "nvidia-cuda-crt==13.0.88": "2c8043c7c9e02492716426e9919fc78d2c5b3b2a7a768a88e952676b08aa55a4",
    "nvidia-cuda-runtime==13.0.96": "7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548",
    "nvidia-cuda-cccl==13.0.85": "e0da7ad981f3a8aff08241b5bfc1af868742a63e2762f53a5171c492ef242649",
    "nvidia-cublas==13.1.0.3": "ee8722c1f0145ab246bccb9e452153b5e0515fd094c3678df50b2a0888b8b171",
}


def cuda_spec() -> dict[str, Any]:
    """The demo's spec for a host with a Blackwell and an Ada card, which nobody asks for here."""
    spec = demo_spec()
    spec["gpus"] = {
        "blackwell": {"model": "rtx-pro-4000-blackwell-sff", "bus-id": "01:00.0"},
        "ada": {"model": "rtx-2000-ada", "bus-id": "02:00.0"},
    }
    spec["cuda"] = {"source": "wheels", "version": VERSION, "wheels": dict(WHEELS)}
    spec["engine"] |= {"backend": "cuda", "architectures": ["120a-real", "89-real"]}
    for service in spec["services"].values():
        service["gpu"] = "blackwell"
    return spec


def play(project: Project, host: Host, playbook: Path, **variables: object) -> str:
    """Run a playbook on the host as a user of plain Ansible would; what it printed."""
    return project.play(host, str(playbook), "-e", json.dumps(variables), seconds=HOURS).ok().stdout
