#!/usr/bin/python3
"""A stand-in for nvidia-smi: cards in a JSON file beside it, answers in the forms that the real one prints.

The forms were composed after public records of drivers 535 to 595: the range error of a Tesla T4, the mobile card
whose limit cannot be set and that ends with "All done.", the words for what a card does not tell, the message for an
unknown field.
The file: {"fault": "", "sets": [], "cards": {UUID: {"limit": W, "enforced": W|null, "min": W, "max": W, "default": W,
"persistence": "Enabled", "counters": [us, us, us, us], "fixed": bool}}}. ``fault``: hang, dead, mismatch, garbage, old.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from pathlib import Path
from typing import Any

PLACES = (Path(__file__).with_name("smi.json"), Path("/var/lib/llamarig/power/smi.json"))
OUTSIDE = Path("/srv/smi.json")
COUNTERS = ("sw_power_cap", "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown")


def say(text: str) -> None:
    """What nvidia-smi prints goes to standard output, its errors too."""
    sys.stdout.write(text + "\n")


def watts(value: float | None) -> str:
    return "[N/A]" if value is None else f"{value:.2f}"


def told(uuid: str, card: dict[str, Any], field: str) -> str:
    name = field.rpartition(".")[2]
    if field.startswith("clocks_event_reasons_counters."):
        return f"{card['counters'][COUNTERS.index(name)]} us"
    words: dict[str, str] = {
        "uuid": uuid,
        "power.limit": watts(card["limit"]),
        "enforced.power.limit": watts(card.get("enforced") or card["limit"]),
        "power.min_limit": watts(card["min"]),
        "power.max_limit": watts(card["max"]),
        "power.default_limit": watts(card["default"]),
        "persistence_mode": card.get("persistence", "Enabled"),
    }
    return words[field]


def query(world: dict[str, Any], fields: list[str]) -> int:
    if world["fault"] == "old" and any("counters" in field for field in fields):
        say(f'Field "{fields[1]}" is not a valid field to query.\n')
        return 2
    if world["fault"] == "garbage":
        say(
            "GPU-short, 70.00\nGPU-01234567-89ab-cdef-0123-456789abcdef, $(reboot), 1e9, -5, nan, 70, Enabled, extra, x"
        )
        return 0
    for uuid, card in world["cards"].items():
        say(", ".join(told(uuid, card, field) for field in fields))
    return 0


def set_limit(world: dict[str, Any], uuid: str, limit: float) -> int:
    card = world["cards"].get(uuid)
    if card is None:
        say(f"No devices were found for {uuid}")
        return 6
    if card.get("fixed"):
        say("Changing power management limit is not supported for GPU: 00000000:01:00.0.")
        say("Treating as warning and moving on.\nAll done.")
        return 0
    if not card["min"] <= limit <= card["max"]:
        say(
            f"Provided power limit {limit:.2f} W is not a valid power limit which should be between "
            f"{card['min']:.2f} W and {card['max']:.2f} W for GPU 00000000:00:04.0\n"
            "Terminating early due to previous errors."
        )
        return 2
    say(f"Power limit for GPU 00000000:01:00.0 was set to {limit:.2f} W from {card['limit']:.2f} W.\n\nAll done.")
    card["limit"] = limit
    return 0


def main(argv: list[str]) -> int:
    place = next(path for path in PLACES if path.exists())
    world = json.loads(place.read_text())
    words = dict(word.partition("=")[::2] for word in argv)
    if world["fault"] == "hang":
        time.sleep(60)
    if world["fault"] == "dead":
        say(
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest "
            "NVIDIA driver is installed and running."
        )
        return 9
    if world["fault"] == "mismatch":
        say("Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 570.133")
        return 18
    if "--query-gpu" in words:
        return query(world, words["--query-gpu"].split(","))
    world["sets"].append([words["--id"], float(words["--power-limit"])])
    status = set_limit(world, words["--id"], float(words["--power-limit"]))
    place.write_text(json.dumps(world))
    # Within the unit's sandbox nothing else can be written; what is set from outside of it can be read here afterwards.
    if place == PLACES[1]:
        with contextlib.suppress(OSError):
            OUTSIDE.write_text(json.dumps(world))
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
