"""A test host with a stand-in nvidia-smi, and the role power run on it as playbooks/site.yml runs it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml
from lab import Host
from lab.project import ROOT, Project

from tests.support.power.bench import BLACKWELL, card

PLAYBOOK = "tests/hosts/power/power.yml"
SPEC = ROOT / "inventory/rtx-4090.yml"
WORLD = "/var/lib/llamarig/power/smi.json"
"""Where the stand-in keeps its cards: the one place that the unit may write."""
STATE = "/var/lib/llamarig/power/state.json"
_TOLD = re.compile(r'"msg": "power (.*)"')
_STAND_IN = Path(__file__).with_name("stand_in.py")


def prepare(host: Host) -> None:
    """A card of 100 to 450 W, and the directories that the role base makes."""
    host.exec("mkdir -p /opt/llamarig/libexec /etc/llamarig /var/lib/llamarig/power")
    host.write("/usr/bin/nvidia-smi", _STAND_IN.read_bytes(), mode=0o755)
    world(host, limit=450.0)


def world(host: Host, limit: float) -> None:
    """The card with this limit, as after a boot or after another program."""
    cards = {BLACKWELL: card(limit=limit, min=100.0, max=450.0, default=450.0)}
    host.write(WORLD, json.dumps({"fault": "", "sets": [], "cards": cards}).encode())


def limit(host: Host, place: str = WORLD) -> float:
    """What the card is held to."""
    found: float = json.loads(host.exec(f"cat {place}").output)["cards"][BLACKWELL]["limit"]
    return found


def given_back(host: Host) -> float:
    """What the card was held to last, by a program that no sandbox confines."""
    return limit(host, "/srv/smi.json")


def describe(project: Project, host: Host, watts: int | None, power: dict[str, Any]) -> None:
    """A spec of the CUDA backend with this limit."""
    spec = yaml.safe_load(SPEC.read_text())
    spec["gpus"]["upper"] |= {"uuid": BLACKWELL} | ({} if watts is None else {"power-limit-w": watts})
    project.describe(host, spec | {"power": power})


def play(project: Project, host: Host, *options: str) -> list[str]:
    """Run the part of an apply; ``subject: reason`` of everything that differed when it began."""
    return _TOLD.findall(project.play(host, PLAYBOOK, *options).ok().stdout)
