"""The program ``power-limit`` with a stand-in nvidia-smi, in a directory of its own."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llamarig.paths import data_root

PATH = data_root() / "templates/opt/llamarig/libexec/power-limit"
STAND_IN = Path(__file__).with_name("stand_in.py")
BLACKWELL = "GPU-01234567-89ab-cdef-0123-456789abcdef"
ADA = "GPU-fedcba98-7654-3210-fedc-ba9876543210"


def card(**changed: Any) -> dict[str, Any]:
    """A card of 70 W that takes 35 to 70 W, as the stand-in keeps it."""
    return {"limit": 70.0, "min": 35.0, "max": 70.0, "default": 70.0, "counters": [0, 0, 0, 0], **changed}


@dataclass
class Bench:
    """A world of cards, a configuration, and the program."""

    place: Path

    def world(self, **cards: dict[str, Any]) -> None:
        """Put these cards into the machine: ``blackwell`` and ``ada``."""
        names = {"blackwell": BLACKWELL, "ada": ADA}
        self.write({"fault": "", "sets": [], "cards": {names[name]: each for name, each in cards.items()}})

    def write(self, world: dict[str, Any]) -> None:
        (self.place / "smi.json").write_text(json.dumps(world))

    def read(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.place / "smi.json").read_text())
        return found

    def change(self, uuid: str, **changed: Any) -> None:
        """What another program, or the work, changes on a card."""
        world = self.read()
        world["cards"][uuid].update(changed)
        self.write(world)

    def fault(self, fault: str) -> None:
        self.write(self.read() | {"fault": fault})

    def config(self, *cards: tuple[str, str | None, int | None]) -> None:
        data = {
            "schema": 1,
            "nvidia-smi": str(self.place / "nvidia-smi"),
            "state": str(self.place / "state.json"),
            "cards": [{"name": name, "uuid": uuid, "watts": watts} for name, uuid, watts in cards],
        }
        (self.place / "power.json").write_text(json.dumps(data))

    def run(self, verb: str = "apply") -> tuple[int, str]:
        """Exit status and what it said."""
        done = subprocess.run(
            [sys.executable, "-I", str(PATH), verb, str(self.place / "power.json")],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        return done.returncode, done.stderr

    @property
    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.place / "state.json").read_text())
        return found


def bench(place: Path) -> Bench:
    """A machine whose stand-in is started with this interpreter."""
    shutil.copy(STAND_IN, place / "stand_in.py")
    tool = place / "nvidia-smi"
    tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I "{place}/stand_in.py" "$@"\n')
    tool.chmod(0o755)
    return Bench(place)
