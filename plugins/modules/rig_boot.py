#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0
"""Choose what boots next, once, while the kernel that runs stays what boots otherwise."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.rig_disk import write_whole

DOCUMENTATION = r"""
module: rig_boot
short_description: Choose the kernel of the next boot in GRUB
description:
  - C(try) makes the running kernel GRUB's default and the named one the choice of the next boot alone, so that a
    machine that does not come up boots the last good kernel when its power is cut. C(keep) makes the running kernel
    the default; after a boot that was proven, that is the new one, and in a rollback the last good one.
  - Where GRUB does not decide (no /boot/grub/grub.cfg), nothing is done, and C(chooses) is false.
options:
  operation:
    description: What to do.
    type: str
    choices: [try, keep]
    required: true
  kernel:
    description: The kernel of the next boot, as C(uname -r) prints it.
    type: str
    default: ""
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
_MENU = re.compile(r"^\s*(submenu|menuentry) .*?\$menuentry_id_option '([^']+)'")
_LARGEST = 1 << 22


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


def choose(module: Any, root: Path, operation: str, kernel: str) -> dict[str, Any]:
    """Carry it out; fails when GRUB decides and knows no entry for a kernel."""
    config = _config(root)
    if not config:
        return {"changed": False, "chooses": False, "default": ""}
    known, running = entries(config), os.uname().release
    missing = [name for name in ([running, kernel] if operation == "try" else [running]) if name not in known]
    if missing:
        module.fail_json(msg=f"GRUB has no entry for kernel {missing[0]}; run `update-grub` on the host and look why")
    setting, changed = root / SETTING, False
    if not setting.is_file() or setting.read_text(errors="replace") != TEXT:
        setting.parent.mkdir(parents=True, exist_ok=True)
        write_whole(setting, TEXT.encode())
        module.run_command(["update-grub"], check_rc=True)
        changed = True
    module.run_command(["grub-set-default", known[running]], check_rc=True)
    if operation == "try":
        module.run_command(["grub-reboot", known[kernel]], check_rc=True)
    return {"changed": changed or operation == "try", "chooses": True, "default": known[running]}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "operation": {"type": "str", "choices": ["try", "keep"], "required": True},
            "kernel": {"type": "str", "default": ""},
            "root": {"type": "path", "default": "/"},
        },
        supports_check_mode=False,
    )
    params = module.params
    module.exit_json(**choose(module, Path(params["root"]), params["operation"], params["kernel"]))


if __name__ == "__main__":
    main()
