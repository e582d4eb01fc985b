#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0
"""Look whether anybody would notice a restart or a reboot: users that are logged in, requests now and of late."""

from __future__ import annotations

from ansible.module_utils import rig_quiet
from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: rig_idle
short_description: Look whether a host is idle
description:
  - Asks each running server for its slots and metrics, reads its journal for requests, and the sessions that
    systemd-logind keeps. It asks for no completion and changes nothing.
options:
  services:
    description: As rig_probe takes them; C(unit), C(address), C(port), C(tls) and C(key_file) are read.
    type: list
    elements: dict
    required: true
  minutes:
    description: How far back a request counts.
    type: int
    default: 10
  wait_s:
    description: Seconds for which running requests are waited for; it returns as soon as there are none.
    type: int
    default: 0
author: llamarig contributors
"""

EXAMPLES = r"""
- name: Look whether the host is idle
  rig_idle:
    services: []
    minutes: 10
  register: idle
"""

RETURN = r"""
idle:
  description: >-
    C(users) with a session, of each service C(running), C(processing), C(recent) and C(error), the
    host's C(clock) and C(waited-s).
  returned: always
  type: dict
"""


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "services": {"type": "list", "elements": "dict", "required": True},
            "minutes": {"type": "int", "default": 10},
            "wait_s": {"type": "int", "default": 0},
        },
        supports_check_mode=True,
    )
    given = module.params
    module.exit_json(changed=False, idle=rig_quiet.drained(given["services"], given["minutes"], given["wait_s"]))


if __name__ == "__main__":
    main()
