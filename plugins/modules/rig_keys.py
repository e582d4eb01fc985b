#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0
"""Keep a service's key file: one key a client, whole or not there, never empty."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.rig_disk import write_whole

DOCUMENTATION = r"""
---
module: rig_keys
short_description: Keep a service's key file
description:
  - For C(generated) keys the file keeps one key a client, under a line C(# client). A client that has a key keeps it,
    a new one gets the candidate of that name, one that is not named any more goes.
  - For a C(file) the given content is written.
  - A file without a single key is refused. No key is ever part of the result.
options:
  path:
    description: The key file.
    type: path
    required: true
  clients:
    description: Who has a key.
    type: list
    elements: str
    default: []
  candidates:
    description: A fresh key for every client, used for those that have none.
    type: dict
    default: {}
  content:
    description: The whole file, instead of generated keys.
    type: str
    required: false
  mode:
    description: Mode of the file.
    type: str
    default: "0600"
author: llamarig contributors
"""

EXAMPLES = r"""
- name: Keep the keys of the chat service
  rig_keys:
    path: /etc/llamarig/keys/chat.keys
    clients: [default]
"""

RETURN = r"""
new:
  description: Clients that got their candidate as key.
  type: list
  elements: str
  returned: always
gone:
  description: Clients whose key was removed.
  type: list
  elements: str
  returned: always
"""

MAX_BYTES = 1 << 20
KEY = re.compile(r"[\x21-\x7e]{16,512}")
FRESH = re.compile(r"[A-Za-z0-9_-]{32,128}")


class RefusedError(Exception):
    """The keys are not fit to guard a server."""


def keys_of(text: str) -> dict[str, str]:
    """Client -> key of a file in our form. A second key of a client and one without a name above it get a name that no
    client can have, so that they go."""
    keys: dict[str, str] = {}
    name = ""
    for line in text.split("\n"):
        if line.startswith("#"):
            name = line[1:].strip()
        elif line:
            keys[name if name and name not in keys else f"key #{len(keys) + 1}"] = line
            name = ""
    return keys


def text_of(keys: dict[str, str]) -> str:
    return "".join(f"# {client}\n{key}\n" for client, key in keys.items())


def merge(present: dict[str, str], clients: list[str], candidates: dict[str, str]) -> dict[str, str]:
    """The keys as they shall be; refuses a weak candidate and an empty outcome."""
    keys = {}
    for client in clients:
        key = present.get(client, "")
        if not KEY.fullmatch(key):
            key = candidates.get(client, "")
            if not FRESH.fullmatch(key):
                raise RefusedError(f"no key of 32 or more characters was offered for client {client!r}")
        keys[client] = key
    if not keys:
        raise RefusedError("a key file without a client would start a server without a key")
    return keys


def checked(content: str) -> str:
    """The content of a key file from the controller, when it holds at least one usable key and nothing else."""
    lines = [line for line in content.splitlines() if line and not line.startswith("#")]
    if not lines:
        raise RefusedError("the key file holds no key: the server would start without one")
    for number, line in enumerate(lines, start=1):
        if not KEY.fullmatch(line):
            raise RefusedError(f"key {number} of the file is not 16 to 512 printable characters without a space")
    return content if content.endswith("\n") else content + "\n"


def read(path: Path) -> tuple[str, int]:
    """Text and mode of the present file; nothing and 0 when it is not there or no regular file of root's."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return "", 0
    with os.fdopen(descriptor, "rb") as file:
        info = os.fstat(file.fileno())
        if not stat.S_ISREG(info.st_mode) or info.st_uid != os.geteuid() or info.st_gid != os.getegid():
            return "", 0
        return file.read(MAX_BYTES).decode("utf-8", "replace"), stat.S_IMODE(info.st_mode)


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            "clients": {"type": "list", "elements": "str", "default": [], "no_log": False},
            "candidates": {"type": "dict", "default": {}, "no_log": True},
            "content": {"type": "str", "no_log": True},
            "mode": {"type": "str", "default": "0600"},
        },
        supports_check_mode=True,
    )
    params: dict[str, Any] = module.params
    path, mode = Path(params["path"]), int(params["mode"], 8)
    text, present_mode = read(path)
    present = keys_of(text)
    try:
        if params["content"] is not None:
            wanted, new, gone = checked(params["content"]), [], []
        else:
            keys = merge(present, params["clients"], params["candidates"])
            wanted = text_of(keys)
            new = [client for client in keys if present.get(client) != keys[client]]
            gone = [client for client in present if client not in keys]
    except RefusedError as refusal:
        module.fail_json(msg=f"{path}: {refusal}")
    changed = (text, present_mode) != (wanted, mode)
    if changed and not module.check_mode:
        try:
            if path.is_dir() and not path.is_symlink():
                module.fail_json(msg=f"{path} is a directory; remove it first")
            write_whole(path, wanted.encode(), mode)
        except OSError as error:
            module.fail_json(msg=f"{path} cannot be written: {error}")
    module.exit_json(changed=changed, new=new, gone=gone)


if __name__ == "__main__":
    main()
