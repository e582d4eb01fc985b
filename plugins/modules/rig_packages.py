#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0
"""Install Debian packages in one transaction, and hand on apt's own words when that fails."""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
---
module: rig_packages
short_description: Install Debian packages in one transaction
description:
  - Calls C(apt-get) itself, so the host needs no Python bindings for apt, and what apt says reaches the user as it is.
  - The index is updated only when a package is missing. An archive that cannot be reached fails the task only when a
    package that is needed could not be installed; then both errors are shown.
  - Packages that an interrupted dpkg left half configured are configured first.
options:
  packages:
    description: Name and exact version of each package, or null for whatever is installed or offered.
    type: dict
    required: true
  source:
    description:
      - The only list that apt may take them from, C(/etc/apt/sources.list.d/x.sources); all of the host's without it.
    type: path
  lock_timeout:
    description: Seconds to wait for another apt or dpkg.
    type: int
    default: 300
author: llamarig contributors
"""

EXAMPLES = r"""
- name: Install what the build needs
  rig_packages:
    packages: {cmake: null, ccache: 4.11.2-1}
"""

RETURN = r"""
installed:
  description: What was installed, as apt was asked for it.
  type: list
  elements: str
  returned: success
"""

ENVIRONMENT = {
    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
    "LC_ALL": "C.UTF-8",
    "DEBIAN_FRONTEND": "noninteractive",
    # Restarting services is ours to decide, not a hook's.
    "NEEDRESTART_SUSPEND": "1",
}
NAME = re.compile(r"[a-z0-9][a-z0-9+.-]+(:[a-z0-9]+)?")
VERSION = re.compile(r"[0-9A-Za-z.+:~-]+")
TELLING = re.compile(r"^(E:|W:|Err:|Error:|Warning:|dpkg: error|make.*Error|\s.*:Depends:|\s*[a-z0-9.+-]+ : )")
TAIL_LINES = 25
TRANSACTION_S = 7200
UPDATES = Path("/var/lib/dpkg/updates")


class FailedError(Exception):
    """A tool failed; the text is its own."""


def call(command: list[str]) -> tuple[int, str]:
    """Exit status and everything said, in order."""
    done = subprocess.run(  # noqa: S603 - apt and dpkg, with names and versions that were checked
        command,
        env={**ENVIRONMENT, **{key: value for key, value in os.environ.items() if key.endswith("_proxy")}},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=TRANSACTION_S,
        check=False,
    )
    return done.returncode, done.stdout.decode("utf-8", "replace")


def words(text: str) -> str:
    """The lines that say what is wrong; the end of it all when there are none."""
    lines = text.strip().splitlines()
    telling = list(dict.fromkeys(line.rstrip() for line in lines if TELLING.match(line)))
    return "\n".join(telling[-TAIL_LINES:] or lines[-TAIL_LINES:])


def missing(packages: dict[str, str | None]) -> list[str]:
    """``name`` or ``name=version`` of each package that is not installed as wanted."""
    form = "${binary:Package} ${Package} ${db:Status-Status} ${Version}\n"
    _, text = call(["dpkg-query", "--show", f"--showformat={form}", "--", *packages])
    installed: dict[str, str] = {}
    for line in text.splitlines():
        parts = line.split(" ")
        if len(parts) == len(form.split(" ")) and parts[2] == "installed":
            installed[parts[0]] = installed[parts[1]] = parts[3]
    wanted = []
    for name, version in packages.items():
        if name not in installed:
            wanted.append(name if version is None else f"{name}={version}")
        elif version is not None and installed[name] != version:
            wanted.append(f"{name}={version}")
    return wanted


def update(options: list[str], lock_timeout: int) -> str:
    """Refresh the index; what was wrong, or nothing. Waits while another apt holds the lists."""
    deadline = time.monotonic() + lock_timeout
    while True:
        status, text = call(["apt-get", "-q", *options, "-o", "APT::Update::Error-Mode=any", "update"])
        if status == 0:
            return ""
        if "Could not get lock" not in text or time.monotonic() > deadline:
            return words(text)
        time.sleep(2)


def only(source: str | None) -> list[str]:
    """Options that make apt read one list and leave what it knows of the others as it is."""
    if source is None:
        return []
    values = (f"Dir::Etc::sourcelist={source}", "Dir::Etc::sourceparts=-", "APT::Get::List-Cleanup=0")
    return [part for value in values for part in ("-o", value)]


def install(wanted: list[str], lock_timeout: int, source: str | None = None) -> None:
    options = ["-o", f"DPkg::Lock::Timeout={lock_timeout}", *only(source)]
    if UPDATES.is_dir() and any(UPDATES.iterdir()):
        status, text = call(["dpkg", "--configure", "-a"])
        if status != 0:
            raise FailedError(f"dpkg --configure -a failed ({status}):\n{words(text)}")
    outdated = update(options, lock_timeout)
    keep = ["-o", "Dpkg::Options::=--force-confold", "--no-install-recommends", "--allow-downgrades"]
    status, text = call(["apt-get", "-q", "-y", *options, *keep, "install", "--", *wanted])
    if status != 0:
        index = f"\napt-get update failed before that:\n{outdated}" if outdated else ""
        raise FailedError(f"apt-get install {' '.join(wanted)} failed ({status}):\n{words(text)}{index}")


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "packages": {"type": "dict", "required": True},
            "source": {"type": "path"},
            "lock_timeout": {"type": "int", "default": 300},
        },
        supports_check_mode=True,
    )
    params: dict[str, Any] = module.params
    packages: dict[str, str | None] = params["packages"]
    for name, version in packages.items():
        if not NAME.fullmatch(name) or (version is not None and not VERSION.fullmatch(version)):
            module.fail_json(msg=f"{name!r} with version {version!r} cannot be a package")
    try:
        wanted = missing(packages) if packages else []
        if wanted and not module.check_mode:
            install(wanted, params["lock_timeout"], params["source"])
            if left := missing(packages):
                raise FailedError(f"apt-get succeeded, and still not installed: {' '.join(left)}")
    except (FailedError, OSError, subprocess.TimeoutExpired) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=bool(wanted), installed=wanted)


if __name__ == "__main__":
    main()
