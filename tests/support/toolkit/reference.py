"""The reference engine for a Blackwell and an Ada card, with the toolkit of 13.0 from wheels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lab import Host
from lab.project import Project, demo_spec

from scripts.gpu_check.files import TOOLKIT, WHEELS

PREFIX = f"/opt/llamarig/cuda/{TOOLKIT}"
HOURS = 4 * 3600.0
"""What a play may take: the whole engine is compiled in over one."""


def cuda_spec() -> dict[str, Any]:
    """The demo's spec for a host with a Blackwell and an Ada card, which nobody asks for here."""
    spec = demo_spec()
    spec["gpus"] = {
        "blackwell": {"model": "rtx-pro-4000-blackwell-sff", "bus-id": "01:00.0"},
        "ada": {"model": "rtx-2000-ada", "bus-id": "02:00.0"},
    }
    spec["cuda"] = {"source": "wheels", "version": TOOLKIT, "wheels": dict(WHEELS)}
    spec["engine"] |= {"backend": "cuda", "architectures": ["120a-real", "89-real"]}
    for service in spec["services"].values():
        service["gpu"] = "blackwell"
    return spec


def play(project: Project, host: Host, playbook: Path, **variables: object) -> str:
    """Run a playbook on the host as a user of plain Ansible would; what it printed."""
    return project.play(host, str(playbook), "-e", json.dumps(variables), seconds=HOURS).ok().stdout
