#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0
"""Look whether the cards still have the memory that was planned, right before anything is stopped or started."""

from __future__ import annotations

import shutil
import subprocess
from typing import Any

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
---
module: rig_cards
short_description: Check that other programs leave the planned memory on each card
description:
  - Asks C(nvidia-smi) for the memory of each card and for the programs on it, and fails when what other programs than
    the given processes hold leaves less than was planned.
  - Where there is no C(nvidia-smi), or it does not answer, nothing is checked; the proof after the start finds what is
    wrong.
options:
  cards:
    description: Cards by C(name), C(uuid) and C(planned_mib); one without a UUID is passed over.
    type: list
    elements: dict
    required: true
  own:
    description: Main processes of our own services, whose memory is planned already.
    type: list
    elements: int
    required: true
author: llamarig contributors
"""

EXAMPLES = r"""
- name: Check the cards
  rig_cards:
    cards: [{name: upper, uuid: GPU-…, planned_mib: 20480.0}]
    own: [812]
"""

RETURN = r"""
cards:
  description: What was seen of each card, MiB.
  type: list
  returned: success
skipped_because:
  description: Why nothing was checked; empty otherwise.
  type: str
  returned: success
"""

PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
SECONDS = 20
BYTES = 1 << 20
ENTRIES = 256


class SilentDriverError(Exception):
    """nvidia-smi is not there or gave no answer."""


def query(words: str) -> list[list[str]]:
    """Rows of one question to nvidia-smi."""
    tool = shutil.which("nvidia-smi", path=PATH)
    if tool is None:
        raise SilentDriverError("nvidia-smi is not there")
    try:
        done = subprocess.run(  # noqa: S603 - a fixed program and arguments, never a shell
            [tool, words, "--format=csv,noheader,nounits"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=False,
            env={"PATH": PATH, "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SilentDriverError(str(error)) from error
    text = done.stdout[:BYTES].decode("utf-8", "replace")
    if done.returncode != 0:
        raise SilentDriverError((done.stderr.decode("utf-8", "replace") + text).strip()[:500])
    return [[cell.strip() for cell in line.split(",")] for line in text.splitlines()[:ENTRIES] if line.strip()]


def mib(cell: str) -> float | None:
    """A figure of nvidia-smi; None for [N/A]."""
    return float(cell) if cell.replace(".", "", 1).isdigit() else None


def apps() -> list[dict[str, Any]]:
    """Programs on the cards, as far as the driver names them."""
    names = ("pid", "gpu_uuid", "used_memory", "process_name")
    rows = query(f"--query-compute-apps={','.join(names)}")
    found = [dict(zip(names, row, strict=False)) for row in rows if len(row) >= len(names)]
    return [{**each, "mib": mib(each["used_memory"]) or 0.0} for each in found if each["pid"].isdigit()]


def look(cards: list[dict[str, Any]], own: set[int]) -> list[dict[str, Any]]:
    """Each planned card that the driver knows: total, kept by the driver, held by others; MiB."""
    running = apps()
    names = ("uuid", "memory.total", "memory.reserved", "memory.used")
    rows = {row[0]: [mib(cell) for cell in row[1:]] for row in query(f"--query-gpu={','.join(names)}")}
    seen = []
    for card in cards:
        figures = rows.get(card["uuid"], [])
        if len(figures) != len(names) - 1 or figures[0] is None or figures[2] is None:
            continue
        here = [app for app in running if app["gpu_uuid"] == card["uuid"]]
        ours = sum(app["mib"] for app in here if int(app["pid"]) in own)
        others = sorted((app["mib"], app["process_name"][:80], int(app["pid"])) for app in here)
        seen.append(
            {
                "name": card["name"],
                "planned": float(card["planned_mib"]),
                "total": figures[0],
                "reserved": figures[1] or 0.0,
                # What nobody is named for, a display say, is of others too.
                "foreign": max(figures[2] - ours, 0.0),
                "programs": [each for each in reversed(others) if each[2] not in own][:5],
            }
        )
    return seen


def short_of(card: dict[str, Any]) -> str:
    """Why the plan does not fit any more; empty when it does."""
    left = card["total"] - card["reserved"] - card["foreign"]
    if card["planned"] <= left:
        return ""
    named = "; ".join(f"{name} (process {pid}) {size:,.0f} MiB" for size, name, pid in card["programs"])
    return (
        f"card {card['name']}: {card['planned']:,.0f} MiB are planned, and of {card['total']:,.0f} other programs hold "
        f"{card['foreign']:,.0f} and the driver {card['reserved']:,.0f}: {card['planned'] - left:,.0f} MiB short"
        + (f" ({named})" if named else "")
    )


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "cards": {"type": "list", "elements": "dict", "required": True},
            "own": {"type": "list", "elements": "int", "required": True},
        },
        supports_check_mode=True,
    )
    cards = [card for card in module.params["cards"] if card.get("uuid")]
    try:
        seen = look(cards, set(module.params["own"])) if cards else []
    except SilentDriverError as error:
        module.exit_json(changed=False, cards=[], skipped_because=str(error))
    short = [words for card in seen if (words := short_of(card))]
    if short:
        fix = "end those programs, or raise gpus.NAME.reserve-mib so that plans count them; nothing was touched"
        module.fail_json(msg="\n".join([*short, f"fix: {fix}"]))
    module.exit_json(changed=False, cards=seen, skipped_because="")


if __name__ == "__main__":
    main()
