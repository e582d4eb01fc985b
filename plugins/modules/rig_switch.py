#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0
"""Switch a host between releases by one link, and keep what is needed to go back."""

from __future__ import annotations

import grp
import json
import os
import pwd
import shutil
import stat
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.rig_disk import relative_link, sync, write_whole

DOCUMENTATION = r"""
---
module: rig_switch
short_description: Switch between releases and keep the way back
description:
  - C(hold) saves the present link and files as the state to go back to, unless one is held already (an apply was
    killed).
  - C(switch) points the link to a release, which must be whole.
  - C(keep) makes the held state the former one, after the new one was proven, unless nothing has changed since.
  - C(restore) puts the held or the former state back, link and files, and forgets it when it was the held one.
  - Files are small texts and links; a file that was not there is taken away again. Key files do not belong here, or a
    revoked key would come back.
options:
  operation:
    description: What to do.
    type: str
    choices: [hold, switch, keep, restore]
    required: true
  release:
    description: Where to switch to.
    type: str
    default: ""
  files:
    description: Absolute paths of the files that belong to the state.
    type: list
    elements: path
    default: []
  source:
    description: What to restore.
    type: str
    choices: [held, former]
    default: held
  root:
    description: Where releases and the link are.
    type: path
    default: /opt/llamarig
  state:
    description: Where the held and the former state are kept.
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
existed:
  description: Whether there was a state to go back to.
  type: bool
  returned: restore
moved:
  description: Whether anything had to be put back.
  type: bool
  returned: restore
"""

MAX_FILE = 4 << 20


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


def saved(path: Path) -> dict[str, Any]:
    """A file or link as it can be put back; ``absent`` when it is not there or nothing of ours."""
    if path.is_symlink():
        return {"path": str(path), "absent": False, "link": str(path.readlink())}
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return {"path": str(path), "absent": True}
    with os.fdopen(descriptor, "rb") as file:
        info = os.fstat(file.fileno())
        if not stat.S_ISREG(info.st_mode) or info.st_size > MAX_FILE:
            return {"path": str(path), "absent": True}
        content = file.read().decode("utf-8", "surrogateescape")
    return {
        "path": str(path),
        "absent": False,
        "content": content,
        "mode": stat.S_IMODE(info.st_mode),
        "owner": _name(pwd.getpwuid, info.st_uid),
        "group": _name(grp.getgrgid, info.st_gid),
    }


def _name(lookup: Any, number: int) -> str:
    try:
        return str(lookup(number)[0])
    except KeyError:
        return "root"


def hold(root: Path, state: Path, params: dict[str, Any]) -> dict[str, Any]:
    """Save link and files. A state that is held already is older and was good: it stays, and gets what it lacks."""
    path = state / "held.json"
    held = read_state(path)
    files = [] if held is None else list(held["files"])
    known = {entry["path"] for entry in files}
    new = [saved(Path(name)) for name in params["files"] if name not in known]
    if held is not None and not new:
        return {"changed": False}
    release = current(root) if held is None else held["release"]
    state.mkdir(mode=0o755, parents=True, exist_ok=True)
    write_whole(path, json.dumps({"release": release, "files": [*files, *new]}).encode(), 0o600)
    return {"changed": True}


def read_state(path: Path) -> dict[str, Any] | None:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    well_formed = isinstance(content, dict) and isinstance(content.get("files"), list)
    return content if well_formed else None


def switch(root: Path, _state: Path, params: dict[str, Any]) -> dict[str, Any]:
    directory = whole(root, params["release"])
    link = root / "current"
    if link.is_dir() and not link.is_symlink():
        raise RefusedError(f"{link} is a directory, not our link; move it away")
    return {"changed": relative_link(link, directory)}


def keep(root: Path, state: Path, _params: dict[str, Any]) -> dict[str, Any]:
    """The held state becomes the former one, in one rename; one that is the present one is no way back."""
    held = state / "held.json"
    kept = read_state(held)
    if kept is None:
        return {"changed": False}
    if kept["release"] == current(root) and all(saved(Path(entry["path"])) == entry for entry in kept["files"]):
        held.unlink()
        return {"changed": False}
    held.replace(state / "former.json")
    sync(state)
    return {"changed": True}


def put_back(entry: dict[str, Any]) -> bool:
    """Make one file what it was; True when it was not."""
    path = Path(entry["path"])
    now = saved(path)
    if now == entry:
        return False
    if entry["absent"]:
        path.unlink(missing_ok=True)
    elif "link" in entry:
        relative_link(path, path.parent / entry["link"])
    else:
        write_whole(path, entry["content"].encode("utf-8", "surrogateescape"), entry["mode"])
        shutil.chown(path, entry["owner"], entry["group"])
    return True


def restore(root: Path, state: Path, params: dict[str, Any]) -> dict[str, Any]:
    """Link and files as they were. Without a former release there is nothing to go back to, and nothing is touched."""
    path = state / f"{params['source']}.json"
    kept = read_state(path)
    if kept is None or not kept["release"]:
        path.unlink(missing_ok=True)
        return {"changed": False, "moved": False, "existed": False, "restored": []}
    directory = whole(root, kept["release"])
    restored = [entry["path"] for entry in kept["files"] if put_back(entry)]
    switched = relative_link(root / "current", directory)
    if params["source"] == "held":
        path.unlink()
    moved = bool(restored) or switched
    return {"changed": moved, "moved": moved, "existed": True, "restored": restored}


OPERATIONS = {"hold": hold, "switch": switch, "keep": keep, "restore": restore}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "operation": {"type": "str", "choices": list(OPERATIONS), "required": True},
            "release": {"type": "str", "default": ""},
            "files": {"type": "list", "elements": "path", "default": []},
            "source": {"type": "str", "choices": ["held", "former"], "default": "held"},
            "root": {"type": "path", "default": "/opt/llamarig"},
            "state": {"type": "path", "default": "/var/lib/llamarig"},
        },
        supports_check_mode=False,
    )
    params: dict[str, Any] = module.params
    root, state = Path(params["root"]), Path(params["state"])
    try:
        result = OPERATIONS[params["operation"]](root, state, params)
    except (RefusedError, OSError) as error:
        module.fail_json(msg=str(error), release=current(root))
    module.exit_json(release=current(root), **result)


if __name__ == "__main__":
    main()
