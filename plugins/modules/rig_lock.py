#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0
"""Take, renew and release a host's lease: one apply at a time."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
---
module: rig_lock
short_description: Take, renew and release the host's lease
description:
  - The lock is a file in C(/run) that says who holds it, from where and since when. It is made in one step with its
    content.
  - A lease that was not renewed for I(lease) seconds has run out and may be taken over.
  - The action plugin of the same name takes over at once when the holder was a process of this controller that is gone.
options:
  operation:
    description: What to do.
    type: str
    choices: [take, renew, release]
    required: true
  run:
    description: Name of the run that asks.
    type: str
    required: true
  holder:
    description: Who asks, as the lock shall say it (C(who), C(from), C(machine), C(pid), C(started)).
    type: dict
    default: {}
  over:
    description: Take the lock away from this run, if it still holds it. C(any) takes it from whoever holds it.
    type: str
    default: ""
  lease:
    description: Seconds for which a lease lasts without being renewed.
    type: int
    default: 900
  path:
    description: The lock.
    type: path
    default: /run/llamarig/lock
author: llamarig contributors
"""

EXAMPLES = r"""
- name: Take the lock
  rig_lock:
    operation: take
    run: "{{ llamarig_run }}"
    holder: "{{ llamarig_controller }}"
"""

RETURN = r"""
held:
  description: Whether the run that asked holds the lock now.
  type: bool
  returned: always
holder:
  description: What the lock said before, when somebody else held it.
  type: dict
  returned: always
taken_over:
  description: Why the lock was taken from its holder; empty when it was free.
  type: str
  returned: always
"""

MAX_BYTES = 4096


@contextlib.contextmanager
def guard(path: Path) -> Iterator[None]:
    """Let one process at a time look at and change the lock."""
    descriptor = os.open(path.with_name("lock.guard"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def read(path: Path) -> dict[str, Any] | None:
    """What the lock says; None when there is none. Unreadable content is a holder without a name."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        text = file.read(MAX_BYTES)
    try:
        content = json.loads(text)
    except ValueError:
        content = None
    return content if isinstance(content, dict) else {"run": "", "who": "unknown", "from": "unknown"}


def write(path: Path, content: dict[str, Any], *, exclusive: bool) -> None:
    """Put the lock there whole: linked when it must be new, renamed over the old one when it is ours to replace."""
    temporary = path.with_name(f".lock.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    with os.fdopen(descriptor, "w") as file:
        file.write(json.dumps(content))
    try:
        if exclusive:
            os.link(temporary, path)
        else:
            os.replace(temporary, path)  # noqa: PTH105 - beside os.link, which says the same
    finally:
        temporary.unlink(missing_ok=True)


def reason_to_take(held: dict[str, Any], over: str, lease: int, now: float) -> str:
    """Why the lock may be taken from its holder; empty when it may not."""
    if over == "any":
        return "it was broken on request"
    if over and over == held.get("run"):
        return "its holder was a process of this controller that is gone"
    renewed = held.get("renewed")
    if not isinstance(renewed, (int, float)) or renewed > now + lease:
        # No time, or one from the future: the age of the file itself is not worth more, so a person decides.
        return ""
    if now - renewed > lease:
        return f"its lease ran out {int(now - renewed - lease)} s ago"
    return ""


def take(path: Path, params: dict[str, Any]) -> dict[str, Any]:
    now = time.time()
    mine = dict(params["holder"], run=params["run"], since=now, renewed=now)
    held = read(path)
    if held is None:
        write(path, mine, exclusive=True)
        return {"held": True, "holder": {}, "taken_over": "", "changed": False}
    if held.get("run") == params["run"]:
        write(path, dict(held, renewed=now), exclusive=False)
        return {"held": True, "holder": {}, "taken_over": "", "changed": False}
    reason = reason_to_take(held, params["over"], params["lease"], now)
    if reason:
        write(path, mine, exclusive=False)
    return {"held": bool(reason), "holder": held, "taken_over": reason, "changed": False}


def renew(path: Path, params: dict[str, Any]) -> dict[str, Any]:
    held = read(path)
    mine = held is not None and held.get("run") == params["run"]
    if mine and held is not None:
        write(path, dict(held, renewed=time.time()), exclusive=False)
    return {"held": mine, "holder": {} if mine else held or {}, "taken_over": "", "changed": False}


def release(path: Path, params: dict[str, Any]) -> dict[str, Any]:
    held = read(path)
    if held is not None and held.get("run") == params["run"]:
        path.unlink()
        return {"held": False, "holder": {}, "taken_over": "", "changed": False}
    return {"held": False, "holder": held or {}, "taken_over": "", "changed": False}


OPERATIONS = {"take": take, "renew": renew, "release": release}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "operation": {"type": "str", "choices": list(OPERATIONS), "required": True},
            "run": {"type": "str", "required": True},
            "holder": {"type": "dict", "default": {}},
            "over": {"type": "str", "default": ""},
            "lease": {"type": "int", "default": 900},
            "path": {"type": "path", "default": "/run/llamarig/lock"},
        },
        supports_check_mode=False,
    )
    path = Path(module.params["path"])
    try:
        path.parent.mkdir(mode=0o755, exist_ok=True)
        with guard(path):
            result = OPERATIONS[module.params["operation"]](path, module.params)
    except OSError as error:
        module.fail_json(msg=f"the lock {path} cannot be used: {error}")
    if module.params["operation"] == "renew" and not result["held"]:
        module.fail_json(msg="this run no longer holds the host's lock", **result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
