#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0
"""Choose what boots, try a new kernel once, and keep the last good one on the disk."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.rig_disk import write_whole
from ansible.module_utils.rig_nvidia import KERNELS, proven_kernels
from ansible.module_utils.rig_reboot_note import forget_note, read_note, write_note

DOCUMENTATION = r"""
module: rig_boot
short_description: Choose the kernel of the next boot in GRUB
description:
  - C(try) makes the running kernel GRUB's default and the named one the choice of the next boot alone, so that a
    machine that does not come up boots the last good kernel when its power is cut. Where the running kernel is itself
    one whose boot was tried and never proven, the default is the one that was proven last. C(keep) makes the running
    kernel the default, after a boot that was proven. C(choose) makes the named one the default, in a rollback.
    C(forget) takes away all that the others wrote, so that GRUB and apt choose by themselves again.
  - Where GRUB does not decide (no /boot/grub/grub.cfg), nothing is chosen, and C(chooses) is false.
  - The kernel that was proven last and the one before it are written down, and apt's autoremove takes neither away.
  - C(try) also notes what the reboot is for, so that one that does not bring it is not made again and again; the other
    operations forget that.
options:
  operation:
    description: What to do.
    type: str
    choices: [try, keep, choose, forget]
    required: true
  kernel:
    description: The kernel to try or to choose, as C(uname -r) prints it.
    type: str
    default: ""
  purpose:
    description: What the reboot of C(try) is for (C(kernel), C(module), C(packages)); empty, and nothing is noted.
    type: dict
    default: {}
  root:
    description: Where the system lies; for tests.
    type: path
    default: /
author: llamarig contributors
"""

EXAMPLES = r"""
- name: Boot the new kernel once
  rig_boot:
    operation: try
    kernel: 6.12.117+deb13-amd64
    purpose: {kernel: 6.12.117+deb13-amd64, module: 610.57.04 open, packages: 5f0c}
"""

RETURN = r"""
chooses:
  description: Whether GRUB decides on this machine.
  type: bool
  returned: always
default:
  description: The entry that boots when nobody chooses.
  type: str
  returned: always
"""

SETTING = "etc/default/grub.d/llamarig.cfg"
TEXT = (
    "# Written by llamarig: what boots is what `grub-set-default` was told, so that a new kernel can be tried once.\n"
    "GRUB_DEFAULT=saved\n"
)
GUARD = "etc/apt/apt.conf.d/53llamarig-kernels"
_MENU = re.compile(r"^\s*(submenu|menuentry) .*?\$menuentry_id_option '([^']+)'")
_LARGEST = 1 << 22
MOST = 2
"""The kernel that was proven last, and the one to go back to from it."""


def entries(config: str) -> dict[str, str]:
    """Kernel -> the id by which grub-set-default finds its plain entry, ``submenu>entry`` where it lies in one."""
    found: dict[str, str] = {}
    submenu = ""
    for line in config.splitlines():
        if line.startswith("}"):
            submenu = ""
        match = _MENU.match(line)
        if match is None:
            continue
        kind, name = match.groups()
        if kind == "submenu":
            submenu = name
        kernel = re.fullmatch(r"gnulinux-(.+)-advanced-.+", name)
        if kind == "menuentry" and kernel:
            found.setdefault(kernel[1], f"{submenu}>{name}" if submenu and line[:1].isspace() else name)
    return found


def _config(root: Path) -> str:
    try:
        with (root / "boot/grub/grub.cfg").open(errors="replace") as file:
            return file.read(_LARGEST)
    except OSError:
        return ""


def guard(kernels: list[str]) -> str:
    """apt's own keeps the running kernel and the two newest; the last good one may be neither (apt.conf(5), kernels
    are named in NeverAutoRemove by regular expressions)."""
    lines = [f'  "^linux-(image|headers)-{re.escape(kernel).replace(chr(92) + "-", "-")}$";' for kernel in kernels]
    return "\n".join(
        [
            "// Written by llamarig: kernels that were proven stay until others were, for a rollback to boot.",
            "APT::NeverAutoRemove {",
            *lines,
            "};\n",
        ]
    )


def remember(root: Path, first: str, *, proven: bool) -> bool:
    """Put a kernel before those that were proven (``proven``: it is one of them now), and all beyond autoremove's
    reach; True when that changed anything."""
    known = [first, *(kernel for kernel in proven_kernels(str(root).rstrip("/")) if kernel != first)]
    changed = _write(root / GUARD, guard(known[:MOST])) if (root / GUARD).parent.is_dir() else False
    if proven:
        (root / KERNELS.lstrip("/")).parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        text = json.dumps({"schema": 1, "proven": known[:MOST]}) + "\n"
        changed = _write(root / KERNELS.lstrip("/"), text) or changed
    return changed


def _write(path: Path, text: str) -> bool:
    if path.is_file() and path.read_text(errors="replace") == text:
        return False
    write_whole(path, text.encode())
    return True


def _chosen(root: Path) -> str:
    """The entry that grub-set-default was told last (grub-editenv: lines of key=value, filled up with #)."""
    try:
        text = (root / "boot/grub/grubenv").read_text(errors="replace")
    except OSError:
        return ""
    return next((line.partition("=")[2] for line in text.splitlines() if line.startswith("saved_entry=")), "")


def last_good(root: Path, kernel: str, known: Collection[str]) -> tuple[str, bool]:
    """What boots when a try of ``kernel`` fails, and whether it counts as proven: the running kernel, unless it is
    itself one that was tried and not proven (its module is missing, say) while another one was. ``known``: to GRUB;
    empty where that does not decide."""
    place, running = str(root).rstrip("/"), os.uname().release
    proven = proven_kernels(place)
    tried = kernel == running or (read_note(place) or {}).get("kernel") == running
    if running in proven or not (proven and tried):
        return running, True
    good = next((name for name in proven if not known or name in known), "")
    return good or running, bool(good)


def choose(module: Any, root: Path, operation: str, kernel: str) -> dict[str, Any]:
    """Carry it out; fails when GRUB decides and knows no entry for a kernel."""
    config = _config(root)
    known = entries(config)
    # What a rollback chooses was proven before, and is so again only once it runs.
    default, proven = (kernel, False) if operation == "choose" else (os.uname().release, True)
    if operation == "try":
        default, proven = last_good(root, kernel, known)
    asked = [default, kernel] if operation == "try" else [default]
    missing = [name for name in asked if config and name not in known]
    if missing:
        module.fail_json(msg=f"GRUB has no entry for kernel {missing[0]}; run `update-grub` on the host and look why")
    changed = remember(root, default, proven=proven)
    if not config:
        return {"changed": changed, "chooses": False, "default": ""}
    if _write_setting(root / SETTING):
        module.run_command(["update-grub"], check_rc=True)
        changed = True
    if _chosen(root) != known[default]:
        module.run_command(["grub-set-default", known[default]], check_rc=True)
        changed = True
    if operation == "try":
        module.run_command(["grub-reboot", known[kernel]], check_rc=True)
    return {"changed": changed or operation == "try", "chooses": True, "default": known[default]}


def forget(module: Any, root: Path) -> dict[str, Any]:
    """Take away what was written here; GRUB's menu is made anew without it, also after that was interrupted."""
    setting, apart = root / SETTING, root / f"{SETTING}.gone"
    if setting.exists():
        # update-grub reads *.cfg alone; the file itself goes when the menu is made.
        setting.replace(apart)
    changed = apart.exists()
    if changed:
        if _config(root):
            module.run_command(["update-grub"], check_rc=True)
        apart.unlink()
    for place in (root / GUARD, root / KERNELS.lstrip("/")):
        changed = place.exists() or changed
        place.unlink(missing_ok=True)
    changed = forget_note(str(root).rstrip("/")) or changed
    return {"changed": changed, "chooses": False, "default": ""}


def note(root: Path, operation: str, purpose: dict[str, Any]) -> bool:
    """Write down before a reboot what it is for, and forget it when a boot was proven or another one is chosen."""
    place = str(root).rstrip("/")
    if operation != "try":
        return forget_note(place)
    if purpose:
        write_note(purpose, place)
    return bool(purpose)


def _write_setting(path: Path) -> bool:
    path.parent.mkdir(parents=True, exist_ok=True)
    return _write(path, TEXT)


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "operation": {"type": "str", "choices": ["try", "keep", "choose", "forget"], "required": True},
            "kernel": {"type": "str", "default": ""},
            "purpose": {"type": "dict", "default": {}},
            "root": {"type": "path", "default": "/"},
        },
        supports_check_mode=False,
    )
    params, root = module.params, Path(module.params["root"])
    if params["operation"] == "forget":
        module.exit_json(**forget(module, root))
    done = choose(module, root, params["operation"], params["kernel"])
    noted = note(root, params["operation"], params["purpose"])
    module.exit_json(**{**done, "changed": done["changed"] or noted})


if __name__ == "__main__":
    main()
