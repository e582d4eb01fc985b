#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0
"""List what llamarig has left on a host, and remove those of it that nobody needs any more."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from ansible.module_utils import rig_gc_named, rig_gc_remove, rig_gc_users
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.rig_gc_dirs import NotOursError, mount_points
from ansible.module_utils.rig_gc_places import Found, Look, Trees
from ansible.module_utils.rig_gc_uses import Scan, Uses

DOCUMENTATION = r"""
---
module: rig_gc
short_description: List and remove what llamarig has left on a host
description:
  - C(listed) tells what lies in llamarig's own trees, with size, identity and the process that uses it, what else lies
    there, and what the link, the record and the kept states of the host name. It changes nothing.
  - C(absent) removes the named things. Each must lie where things of its kind may lie, still be the one that was
    listed, and be used by no process; links are not followed and mounts not crossed. What is left says why.
  - What goes is decided on the controller (llamarig/compare/gc.py).
options:
  state: {description: What to do., type: str, choices: [listed, absent], default: listed}
  models: {description: Directories of models that the spec names., type: list, elements: path, default: []}
  users: {description: Users that the spec names., type: list, elements: str, default: []}
  things:
    description: What to remove, each as it was listed (C(kind), C(path), C(id)).
    type: list
    elements: dict
    default: []
  search:
    description: Whether the local file systems are searched for files of a user that may go.
    type: bool
    default: true
author: llamarig contributors
"""

EXAMPLES = r"""
- name: List what lies there
  rig_gc:
    state: listed
    models: [/var/lib/llamarig/models]
    users: [llamarig-build, llama-chat]
"""

RETURN = r"""
listing:
  description: What lies there, see docs/contracts.md. All of it is hostile text.
  type: dict
  returned: listed
removed: {description: What is gone now., type: list, elements: dict, returned: absent}
left: {description: What was to go and stayed, with C(reason)., type: list, elements: dict, returned: absent}
"""

TREES = Trees(())
SYSTEMCTL = "/usr/bin/systemctl"
FIRST = ("link", "user", "leftover")
"""Kinds that go before the others: names before contents, and what holds a name that others need."""
_LONGEST = 4096


def trees_of(models: Collection[str], names: dict[str, Any], base: Trees) -> Trees:
    """Where to look: the spec's directories of models, and those that the host itself knows from before."""
    known = [path for part in names.values() if isinstance(part, dict) for path in part.get("models", [])]
    homes = [*models, *(home for path in known if (home := _home(path)))]
    return replace(base, models=tuple(dict.fromkeys(home for home in homes if os.path.normpath(home) == home != "/")))


def _home(path: str) -> str:
    """The directory of models that holds a content; empty for another path."""
    return re.sub(r"/sha256/[0-9a-f]{64}\Z", "", path) if re.search(r"^/.*/sha256/[0-9a-f]{64}\Z", path) else ""


def places_of(trees: Trees) -> list[str]:
    """The trees as paths, for a look at processes and owners."""
    return [trees.root, trees.state, trees.ccache, *trees.models]


def used(found: Found, trees: Trees) -> Uses:
    """Look at all processes, and note in each thing who uses it."""
    inodes = set().union(*(weight.inodes for weight in found.weights.values()))
    uses = Scan(places_of(trees), inodes).run()
    for thing in found.things:
        path, name = thing["path"], Path(thing["path"]).name
        user = uses.of(path, found.weights[path].inodes, f"llamarig-build-{name}" if thing["kind"] == "build" else name)
        if user is None and thing["kind"] == "build":
            # A build sees its own tree under these names, whatever it is called outside.
            user = uses.of(f"{trees.state}/build/src", set()) or uses.of(f"{trees.state}/build/out", set())
        thing["used"] = user
    return uses


def listing(params: dict[str, Any], base: Trees = TREES) -> dict[str, Any]:
    """What lies there, who uses it, and what the host names."""
    try:
        names = rig_gc_named.named(base.root, base.state)
    except rig_gc_named.UnreadableError as error:
        return {"schema": 1, "unreadable": str(error), "things": [], "unknown": [], "names": {}, "blind": []}
    trees = trees_of(params["models"], names, base)
    found = Look(trees, mount_points()).run()
    uses = used(found, trees)
    kept = [user for part in names.values() if isinstance(part, dict) for user in part.get("users", [])]
    users = rig_gc_users.made_by_us({*params["users"], *kept})
    found.things += rig_gc_users.describe(users, uses.uids, places_of(trees), search=params["search"])
    return {
        "schema": 1,
        "unreadable": "",
        "things": found.things,
        "unknown": found.unknown,
        "names": names,
        "blind": sorted(uses.blind, key=lambda user: user["pid"])[:100],
    }


def absent(params: dict[str, Any], dry: bool, base: Trees = TREES) -> dict[str, Any]:
    """Remove what is named and still is as it was listed."""
    fresh = listing(params, base)
    if fresh["unreadable"]:
        return {"changed": False, "removed": [], "left": [], "failed": True, "msg": fresh["unreadable"]}
    now = {(thing["kind"], thing["path"]): thing for thing in fresh["things"]}
    trees = trees_of(params["models"], fresh["names"], base)
    removed: list[dict[str, Any]] = []
    left: list[dict[str, Any]] = []
    errors: list[str] = []
    for asked in sorted(params["things"], key=lambda thing: (thing["kind"] not in FIRST, str(thing["path"]))):
        thing = now.get((asked["kind"], asked["path"]))
        if thing is None:
            continue  # it is gone: that is what was asked for
        reason = stays(thing, asked, trees, bool(fresh["blind"]))
        try:
            if not reason and not dry:
                _take_away(thing)
        except NotOursError as error:
            reason = str(error)
        except OSError as error:
            reason = error.strerror or str(error)
            errors.append(f"{thing['path']}: {reason}")
        (left if reason else removed).append({"kind": thing["kind"], "path": thing["path"], "bytes": thing["bytes"]})
        if reason:
            left[-1]["reason"] = reason
    answer = {"changed": bool(removed), "removed": removed, "left": left}
    if errors:
        more = f" and {len(errors) - 1} more" if len(errors) > 1 else ""
        answer |= {"failed": True, "msg": f"something could not be removed: {errors[0]}{more}"}
    return answer


def stays(thing: dict[str, Any], asked: dict[str, Any], trees: Trees, blind: bool) -> str:
    """Why a thing that was to go stays after all; empty when it may go."""
    if thing["kind"] != "user" and not trees.allows(thing["kind"], thing["path"]):
        return "it does not lie where llamarig keeps such things"
    if thing["id"] != asked["id"]:
        return "something else has taken its place"
    if thing["used"] is not None:
        return f"process {thing['used']['pid']} ({thing['used']['command']}) uses it by now"
    if blind:
        return "not every process could be looked into"
    return str(thing["odd"])


def _take_away(thing: dict[str, Any]) -> None:
    kind, path = thing["kind"], thing["path"]
    if kind == "user":
        rig_gc_users.remove(path)
        return
    if kind in ("build", "job"):
        # A finished job stays loaded as a unit, and would be taken for the result of the next one.
        name = Path(path).name
        unit = f"llamarig-build-{name}.service" if kind == "build" else f"{name}.service"
        for verb in ("stop", "reset-failed"):
            subprocess.run([SYSTEMCTL, verb, "--", unit], capture_output=True, check=False)  # noqa: S603 - no shell, a name of ours
    rig_gc_remove.remove(kind, path, thing["id"])


def capped(value: Any) -> Any:
    """The same data with its strings cut and clean."""
    if isinstance(value, str):
        return value[:_LONGEST].encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {capped(key): capped(item) for key, item in value.items()}
    return [capped(item) for item in value] if isinstance(value, list) else value


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["listed", "absent"], "default": "listed"},
            "models": {"type": "list", "elements": "path", "default": []},
            "users": {"type": "list", "elements": "str", "default": []},
            "things": {"type": "list", "elements": "dict", "default": []},
            "search": {"type": "bool", "default": True},
        },
        supports_check_mode=True,
    )
    try:
        if module.params["state"] == "listed":
            module.exit_json(changed=False, listing=capped(listing(module.params)))
        answer = capped(absent(module.params, module.check_mode))
    except OSError as error:
        module.fail_json(msg=f"what lies on the host could not be looked at: {error}")
    if answer.pop("failed", False):
        module.fail_json(**answer)
    module.exit_json(**answer)


if __name__ == "__main__":
    main()
