"""What the last reboot was made for, written down before it: one that did not bring it must not be made every night.

Standard library only. rig_boot writes the note, the observer reads it, llamarig/compare/reboot_tried.py judges it.
"""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

from ansible.module_utils.rig_disk import write_whole
from ansible.module_utils.rig_files import UnusualFileError, read_json
from ansible.module_utils.rig_system import boot_id

NOTE = "/var/lib/llamarig/reboot.json"
PURPOSE = ("kernel", "module", "packages")
"""What a reboot is to bring: the kernel that boots, version and flavour of the module, a hash over the packages."""
_TOLD = ("at", "boot-id", "tries", *PURPOSE)
_LARGEST = 1 << 14


def write_note(purpose: dict[str, Any], root: str = "") -> None:
    """Note what the reboot that follows is for, how often one was made for it, when, and the boot that it ends."""
    told = {key: str(purpose.get(key, "")) for key in PURPOSE}
    known = read_note(root) or {}
    again = all(known.get(key) == told[key] for key in PURPOSE) and known["boot-id"] != boot_id(root)
    tries = int(known["tries"]) + 1 if again else 1
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    place = Path(root + NOTE)
    place.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    text = json.dumps({"schema": 1, "at": now, "boot-id": boot_id(root), "tries": str(tries), **told}) + "\n"
    write_whole(place, text.encode(), 0o644)


def forget_note(root: str = "") -> bool:
    """A boot came true, or another one was chosen; True when there was a note."""
    place = Path(root + NOTE)
    there = place.exists()
    place.unlink(missing_ok=True)
    return there


def read_note(root: str = "") -> dict[str, str] | None:
    """The note; None where there is none, or what lies in its place is no note."""
    try:
        told = read_json(root + NOTE, _LARGEST)
    except UnusualFileError:
        return None
    if not isinstance(told, dict) or not all(isinstance(told.get(key), str) for key in _TOLD):
        return None
    if not re.fullmatch("[1-9][0-9]{0,3}", told["tries"], re.ASCII):
        return None
    return {key: told[key] for key in _TOLD}
