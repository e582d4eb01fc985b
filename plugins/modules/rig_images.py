#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0
"""Prove that a CUDA build holds machine code for exactly what was asked, and for every card, before it may run."""

from __future__ import annotations

from pathlib import Path

from ansible.module_utils import rig_fatbin
from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
---
module: rig_images
short_description: Check which machine code a CUDA library carries
description:
  - Reads the fat binaries of the library itself, without any tool of the toolkit, and fails when an architecture that
    was asked for is missing, one is there that nobody asked for, or an installed card has no code that runs on it.
options:
  directory:
    description: Directory of the release's libraries.
    type: path
    required: true
  library:
    description: The library's name.
    type: str
    default: libggml-cuda.so
  architectures:
    description: What was asked for, as CMake names it.
    type: list
    elements: str
    required: true
  cards:
    description: Architectures of the installed cards, C(120a).
    type: list
    elements: str
    default: []
author: llamarig contributors
"""

EXAMPLES = r"""
- name: Check the machine code
  rig_images:
    directory: /opt/llamarig/releases/x/lib
    architectures: [120a-real, 89-real]
    cards: [120a, 89]
"""

RETURN = r"""
images:
  description: Architectures with machine code, and C(ptx) ones.
  type: dict
  returned: success
"""


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "directory": {"type": "path", "required": True},
            "library": {"type": "str", "default": "libggml-cuda.so"},
            "architectures": {"type": "list", "elements": "str", "required": True},
            "cards": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )
    path = Path(module.params["directory"]) / module.params["library"]
    try:
        with path.open("rb") as stream:
            found = set(rig_fatbin.images(stream))
    except (OSError, rig_fatbin.NotElfError) as error:
        module.fail_json(msg=f"{path}: {error}")
    problems = rig_fatbin.wrong(found, set(module.params["architectures"]), set(module.params["cards"]))
    if problems:
        module.fail_json(msg=f"{path.name} does not hold the machine code that was asked for: {'; '.join(problems)}")
    code = sorted({image.architecture for image in found if not image.ptx})
    ptx = sorted({image.architecture for image in found if image.ptx})
    module.exit_json(changed=False, images={"code": code, "ptx": ptx})


if __name__ == "__main__":
    main()
