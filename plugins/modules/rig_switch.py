#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0
"""Switch a host between releases by one link, and keep what is needed to go back."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.rig_disk import relative_link, sync
from ansible.module_utils.rig_state import (
    alike,
    as_wanted,
    malformed,
    put_back,
    read_state,
    saved,
    without,
    write_state,
)

DOCUMENTATION = r"""
---
module: rig_switch
short_description: Switch between releases and keep the way back
description:
  - C(hold) saves the present link and files as the state that a failed run goes back to. One that is held already (a
    run was killed) stays while nothing that the killed run wrote was started.
  - C(switch) points the link to a release, which must be whole.
  - C(started) notes in the held state that what was written runs now.
  - C(keep) writes down the state that was just proven. The one that was proven before it becomes the former one, the
    way back of a rollback, when it had another release or other files. What somebody edited on the host is in neither.
  - C(booted) notes in the proven state that it was proven on the kernel that runs now. Every state names its kernel.
  - C(done) forgets the held state; the run that held it has finished.
  - C(restore) puts the held or the former state back, link and files, and forgets it when it was the held one.
  - Files are small texts and links; a file that was not there is taken away again. Key files do not belong here, or a
    revoked key would come back.
options:
  operation:
    description: What to do.
    type: str
    choices: [hold, switch, started, keep, booted, done, restore]
    required: true
  run:
    description: The run that holds, or keeps.
    type: str
    default: ""
  applied_from:
    description: Name of the controller of that run.
    type: str
    default: ""
  release:
    description: Where to switch to.
    type: str
    default: ""
  files:
    description: Absolute paths of the files that belong to the state.
    type: list
    elements: path
    default: []
  contents:
    description:
      - Files of the state as they were wanted (C(path), C(content), C(mode), C(owner), C(group)). They are kept in
        these words rather than as they are on the host.
    type: list
    elements: dict
    default: []
  source:
    description: What to restore, or (C(former)) what to keep as proven.
    type: str
    choices: [held, former]
    default: held
  root:
    description: Where releases and the link are.
    type: path
    default: /opt/llamarig
  state:
    description: Where the held, the proven and the former state are kept.
    type: path
    default: /var/lib/llamarig
author: llamarig contributors
"""

EXAMPLES = r"""
- name: Switch to the release
  rig_switch:
    operation: switch
    release: 4df29be4f-0123456789ab
"""

RETURN = r"""
release:
  description: The release that the link points to now; empty when there is no link.
  type: str
  returned: always
restored:
  description: Files that were put back or taken away.
  type: list
  elements: str
  returned: restore
gone:
  description: Those of them that were taken away.
  type: list
  elements: str
  returned: restore
former:
  description: Release of the former state; none when there is no way back.
  type: str
  returned: keep
existed:
  description: Whether there was a state to go back to.
  type: bool
  returned: restore
moved:
  description: Whether anything had to be put back.
  type: bool
  returned: restore
"""


class RefusedError(Exception):
    """What was asked would leave the host in a half state."""


def current(root: Path) -> str:
    """The release that the link names; empty when there is none or it leads elsewhere."""
    try:
        parts = (root / "current").readlink().parts
    except OSError:
        return ""
    return parts[-1] if parts[:-1] == ("releases",) else ""


def whole(root: Path, release: str) -> Path:
    """The directory of a finished release; refuses one that is not."""
    if not release or "/" in release or release.startswith("."):
        raise RefusedError(f"{release!r} is not the name of a release")
    directory = root / "releases" / release
    for part in ("provenance.json", "bin/llama-server"):
        path = directory / part
        if path.is_symlink() or not path.is_file():
            raise RefusedError(f"release {release} is not whole: {path} is missing")
    return directory


def hold(root: Path, state: Path, params: dict[str, Any]) -> dict[str, Any]:
    """Save link and files. What a killed run held stays, and gets what it lacks, while nothing of it was started."""
    path = state / "held.json"
    older = read_state(path)
    held = older if older is not None and not older.get("started") else None
    files = [] if held is None else list(held["files"])
    known = {entry["path"] for entry in files}
    files += [saved(Path(name)) for name in params["files"] if name not in known]
    release = current(root) if held is None else held["release"]
    state.mkdir(mode=0o755, parents=True, exist_ok=True)
    write_state(path, {"release": release, "files": files, **signed(params)})
    return {"changed": True}


def signed(params: dict[str, Any]) -> dict[str, Any]:
    """Whose state it is, of when, and the kernel that ran."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return {"at": now, "run": params["run"], "from": params["applied_from"], "kernel": os.uname().release}


def started(_root: Path, state: Path, _params: dict[str, Any]) -> dict[str, Any]:
    path = state / "held.json"
    held = read_state(path)
    if held is not None:
        write_state(path, held | {"started": True})
    return {"changed": held is not None}


def switch(root: Path, _state: Path, params: dict[str, Any]) -> dict[str, Any]:
    directory = whole(root, params["release"])
    link = root / "current"
    if link.is_dir() and not link.is_symlink():
        raise RefusedError(f"{link} is a directory, not our link; move it away")
    return {"changed": relative_link(link, directory)}


def keep(root: Path, state: Path, params: dict[str, Any]) -> dict[str, Any]:
    """What was just proven is the way back of the next change, what was proven before it that of a rollback."""
    former, proven, held = (read_state(state / f"{name}.json") for name in ("former", "proven", "held"))
    before = proven if proven is not None else held
    if params["source"] == "former" and former is not None:
        new = former
    else:
        given = {entry["path"]: entry for entry in map(as_wanted, params["contents"])}
        now = [given.get(name) or saved(Path(name)) for name in params["files"]]
        new = {"release": current(root), "files": now, **signed(params)}
    if before is not None and before["release"] and not alike(before, new):
        former = without(before, new)
        write_state(state / "former.json", former)
        new = without(new, before)
    write_state(state / "proven.json", new)
    release = former["release"] if former is not None else ""
    return {"changed": True, "former": release or None}


def booted(_root: Path, state: Path, _params: dict[str, Any]) -> dict[str, Any]:
    path, kernel = state / "proven.json", os.uname().release
    proven = read_state(path)
    if proven is None or proven.get("kernel") == kernel:
        return {"changed": False}
    write_state(path, proven | {"kernel": kernel})
    return {"changed": True}


def done(_root: Path, state: Path, _params: dict[str, Any]) -> dict[str, Any]:
    held = state / "held.json"
    found = held.exists()
    held.unlink(missing_ok=True)
    sync(state)
    return {"changed": found}


def restore(root: Path, state: Path, params: dict[str, Any]) -> dict[str, Any]:
    """Link and files as they were. Without a former release there is nothing to go back to, and nothing is touched."""
    path = state / f"{params['source']}.json"
    kept = read_state(path)
    if kept is None or not kept["release"]:
        path.unlink(missing_ok=True)
        return {"changed": False, "moved": False, "existed": False, "restored": [], "gone": []}
    directory = whole(root, kept["release"])
    restored = [entry["path"] for entry in kept["files"] if put_back(entry)]
    switched = relative_link(root / "current", directory)
    if params["source"] == "held":
        path.unlink()
    moved = bool(restored) or switched
    gone = [entry["path"] for entry in kept["files"] if entry.get("absent") and entry["path"] in restored]
    return {"changed": moved, "moved": moved, "existed": True, "restored": restored, "gone": gone}


OPERATIONS = {
    "hold": hold,
    "switch": switch,
    "started": started,
    "keep": keep,
    "booted": booted,
    "done": done,
    "restore": restore,
}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "operation": {"type": "str", "choices": list(OPERATIONS), "required": True},
            "release": {"type": "str", "default": ""},
            "run": {"type": "str", "default": ""},
            "applied_from": {"type": "str", "default": ""},
            "contents": {"type": "list", "elements": "dict", "default": []},
            "files": {"type": "list", "elements": "path", "default": []},
            "source": {"type": "str", "choices": ["held", "former"], "default": "held"},
            "root": {"type": "path", "default": "/opt/llamarig"},
            "state": {"type": "path", "default": "/var/lib/llamarig"},
        },
        supports_check_mode=False,
    )
    params: dict[str, Any] = module.params
    root, state = Path(params["root"]), Path(params["state"])
    for path in malformed(state):
        module.warn(f"{path} is not a state that llamarig wrote; it is taken as absent")
    try:
        result = OPERATIONS[params["operation"]](root, state, params)
    except (RefusedError, OSError) as error:
        module.fail_json(msg=str(error), release=current(root))
    module.exit_json(release=current(root), **result)


if __name__ == "__main__":
    main()
