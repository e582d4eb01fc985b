#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0
"""Wait until no other apt or dpkg works on the host, and name the one that does not end."""

from __future__ import annotations

import fcntl
import os
import struct
import time
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
---
module: rig_apt_wait
short_description: Wait for another apt or dpkg to finish
description:
  - Looks who holds the locks of dpkg and apt, and waits until nobody does. Takes none itself, and ends nobody's work.
  - Fails when somebody still holds one after C(lock_timeout), with that process by name.
options:
  lock_timeout:
    description: Seconds to wait.
    type: int
    default: 300
  root:
    description: Where the system lies; for tests.
    type: path
    default: /
author: llamarig contributors
"""

EXAMPLES = r"""
- name: Wait for another apt or dpkg to finish
  rig_apt_wait:
    lock_timeout: 300
"""

RETURN = r"""
waited:
  description: Seconds that were waited.
  type: float
  returned: success
holder:
  description: Who was waited for last; empty when nobody.
  type: str
  returned: success
"""

LOCKS = (
    "var/lib/dpkg/lock-frontend",
    "var/lib/dpkg/lock",
    "var/lib/apt/lists/lock",
    "var/cache/apt/archives/lock",
)
_FLOCK = "hhqqi4x"
"""struct flock of fcntl(2) on 64-bit Linux: type, whence, start, length, process."""
_PAUSE_S = 1.0
_LONGEST = 120


def holder(root: Path) -> int:
    """The process that holds one of the locks; 0 when nobody does."""
    for name in LOCKS:
        try:
            descriptor = os.open(root / name, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
            kind, _, _, _, process = struct.unpack(_FLOCK, fcntl.fcntl(descriptor, fcntl.F_GETLK, asked))
        finally:
            os.close(descriptor)
        if kind != fcntl.F_UNLCK:
            return int(process)
    return 0


def named(process: int) -> str:
    """``apt-get -y upgrade (process 812)``; what it calls itself is cut, and without control characters."""
    try:
        words = Path(f"/proc/{process}/cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    except OSError:
        words = []
    text = "".join(each if each.isprintable() else "?" for each in " ".join(filter(None, words)))
    return f"{text[:_LONGEST] or 'somebody'} (process {process})"


def wait(root: Path, seconds: float) -> tuple[str, str, float]:
    """(who still holds a lock, who was waited for last, seconds waited)."""
    started, last = time.monotonic(), ""
    while (process := holder(root)) != 0:
        last = named(process)
        if time.monotonic() - started >= seconds:
            return last, last, time.monotonic() - started
        time.sleep(_PAUSE_S)
    return "", last, time.monotonic() - started


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "lock_timeout": {"type": "int", "default": 300},
            "root": {"type": "path", "default": "/"},
        },
        supports_check_mode=True,
    )
    params: dict[str, Any] = module.params
    still, last, waited = wait(Path(params["root"]), params["lock_timeout"])
    if still:
        module.fail_json(
            msg=f"another apt or dpkg works on this host and did not end within {params['lock_timeout']} s: {still}\n"
            "fix: wait until it is done, or end it on the host if it hangs; then apply again: "
            "what it leaves half done is finished first"
        )
    module.exit_json(changed=False, waited=round(waited, 1), holder=last)


if __name__ == "__main__":
    main()
