#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0
"""Collect what a machine says of its kernels, driver, cards and servers; changes nothing."""

from __future__ import annotations

from ansible.module_utils import rig_bundle
from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
---
module: rig_doctor
short_description: Collect what a machine says of its driver, cards and servers
description:
  - Runs tools that only read (nvidia-smi, dkms status, lspci, mokutil, dpkg-query, journalctl and others), each with a
    limit in time and size, and reads files under /proc, /sys, /boot and /lib/modules.
  - A tool that is not there, hangs or fails is part of the answer. Changes nothing.
options: {}
author:
  - llamarig (@llamarig)
"""

EXAMPLES = r"""
- name: Collect what the machine says
  rig_doctor:
  register: collected
"""

RETURN = r"""
collected:
  description: The words of every tool by name, kernels, links and device nodes.
  returned: always
  type: dict
"""


def main() -> None:
    module = AnsibleModule(argument_spec={}, supports_check_mode=True)
    module.exit_json(changed=False, collected=rig_bundle.collect())


if __name__ == "__main__":
    main()
