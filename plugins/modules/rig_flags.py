#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0
"""Ask a release's own server which flags it knows, before anything is switched to it."""

from __future__ import annotations

import pwd
import re
import subprocess
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
---
module: rig_flags
short_description: Check that a server binary knows every flag
description:
  - Runs the binary's C(--help) as an unprivileged user and looks for each flag in it. A flag that is missing, or
    that the help says was removed, fails the task by name.
options:
  binary:
    description: The server.
    type: path
    required: true
  flags:
    description: The flags that units pass.
    type: list
    elements: str
    required: true
  user:
    description: Who runs the binary.
    type: str
    required: true
author: llamarig contributors
"""

EXAMPLES = r"""
- name: Check the flags
  rig_flags:
    binary: /opt/llamarig/releases/x/bin/llama-server
    flags: [--model]
    user: llamarig-build
"""

RETURN = r"""
known:
  description: How many flags the binary knows.
  type: int
  returned: success
"""

TIMEOUT_S = 60
DRIVERS = "libcuda.so.1"
MAX_BYTES = 4 << 20
OPTION_LINE = re.compile(r"^-")
FLAG = re.compile(r"^--?[A-Za-z][A-Za-z0-9-]*$")
REMOVED = re.compile(r"the argument has been removed[^(]*")


def options_of(help_text: str) -> dict[str, str]:
    """Flag -> what the help says about it. An option begins at the margin: ``-c,    --ctx-size N      text``."""
    known: dict[str, str] = {}
    current: list[str] = []
    for line in help_text.splitlines():
        if OPTION_LINE.match(line) and not line.startswith("-----"):
            current = []
            for word in re.split(r"[,\s]+", line):
                if not FLAG.match(word):
                    break
                current.append(word)
            text = line
        elif line.startswith(" ") and current:
            text = line.strip()
        else:
            current = []
            continue
        for flag in current:
            known[flag] = f"{known.get(flag, '')} {text}".strip()
    return known


def complaints(known: dict[str, str], flags: list[str]) -> list[str]:
    """One line for each flag that the binary would refuse."""
    found = []
    for flag in flags:
        if flag not in known:
            found.append(f"{flag}: unknown to this release")
        elif (removed := REMOVED.search(known[flag])) is not None:
            found.append(f"{flag}: {' '.join(removed[0].split())}")
    return found


def rights_of(account: pwd.struct_passwd) -> dict[str, Any]:
    """How to start a program as that user and with no further group."""
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}


def help_of(binary: Path, user: str) -> str:
    rights = rights_of(pwd.getpwnam(user))
    done = subprocess.run(  # noqa: S603 - the release's own server, with one fixed argument and no rights
        [str(binary), "--help"],
        cwd="/",
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=TIMEOUT_S,
        check=False,
        **rights,
    )
    text = done.stdout[:MAX_BYTES].decode("utf-8", "replace")
    if done.returncode != 0:
        raise RuntimeError(f"--help ended with status {done.returncode}: {text[-2000:].strip()}")
    return text


def advice(said: str) -> str:
    """What to do about the one library that no release brings along, when it is that one that is missing."""
    if DRIVERS not in said:
        return ""
    return (
        f"\n{DRIVERS} belongs to the NVIDIA driver, which is not on this host. fix: let `driver` in the spec install "
        "it, or install it by hand; nothing was restarted"
    )


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "binary": {"type": "path", "required": True},
            "flags": {"type": "list", "elements": "str", "required": True},
            "user": {"type": "str", "required": True},
        },
        supports_check_mode=True,
    )
    params: dict[str, Any] = module.params
    binary = Path(params["binary"])
    try:
        known = options_of(help_of(binary, params["user"]))
    except KeyError:
        module.fail_json(msg=f"the user {params['user']} does not exist")
    except (OSError, RuntimeError, subprocess.TimeoutExpired) as error:
        module.fail_json(msg=f"{binary} does not run: {error}{advice(str(error))}")
    found = complaints(known, params["flags"])
    if found:
        said = f"{binary} refuses flags that the units pass: " + "; ".join(found)
        fix = "remove them from the spec (`llamarig plan HOST --argv` shows the arguments), or choose another commit"
        module.fail_json(msg=f"{said}\nfix: {fix}; nothing was restarted", complaints=found)
    module.exit_json(changed=False, known=len(params["flags"]))


if __name__ == "__main__":
    main()
