#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0
"""Write down on the host what was applied: releases, files with hash and stat tuple, when and from where."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from ansible.module_utils import rig_store
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.rig_disk import write_whole
from ansible.module_utils.rig_files import Hasher, UnusualFileError, canonical_digest, lstat, stat_tuple

DOCUMENTATION = r"""
module: rig_record
short_description: Write llamarig's record of what was applied
description:
  - Hashes what was applied, or believes an earlier record while a file's stat tuple still holds, and replaces
    C(/var/lib/llamarig/record.json) as a whole (temporary file, fsync, rename).
  - Every file of C(release) and C(former_release) is recorded beside C(files).
  - A record that already says all this is left alone, whenever it was written.
options:
  host:
    description: The host's name in its spec.
    type: str
    required: true
  release:
    description: Id of the release that C(current) leads to.
    type: str
    required: true
  former_release:
    description: Id of the release that a rollback would switch to. By default the one that the last record knows.
    type: str
  run:
    description: Id of the run that applied it.
    type: str
    required: true
  applied_from:
    description: Name of the controller.
    type: str
    required: true
  llamarig:
    description: Version of llamarig.
    type: str
    required: true
  gpus:
    description: Name of each card and its UUID. By default those that the last record knows.
    type: dict
  files:
    description: Absolute paths of the other files that were applied, models too. One that is gone fails the task.
    type: list
    elements: str
    default: []
  expected:
    description:
      - Path and wanted sha256 of files. A file that has another content by now (somebody edited it while the apply ran)
        is recorded with the wanted hash and without a stat tuple, so that the next look blames the edit.
    type: dict
    default: {}
  force:
    description: Write even when the present record says the same, to renew its time.
    type: bool
    default: false
author: llamarig
"""

EXAMPLES = r"""
- name: Write the record
  rig_record:
    host: demo
    release: 4df29be4f-0123456789ab
    run: 20261129T160000-1
    applied_from: controller
    llamarig: 0.1.0
    files: [/etc/systemd/system/llama-chat.service]
"""

RETURN = r"""
record:
  description: The record that now lies on the host, see docs/contracts.md.
  returned: success
  type: dict
"""

_SETTLED_NS = 50_000_000
"""A file changed less than this ago might change again within the same tick of its time stamps."""
_RENEWED = ("applied-at", "run", "applied-from", "digest")
"""What differs between two records that say the same."""


def entry_of(path: str, hasher: Hasher, wanted: Any = None) -> dict[str, Any]:
    """Hash and stat tuple of a file that was just applied; only the wanted hash when it is another by now."""
    info = lstat(path)
    if info is None:
        raise UnusualFileError("is not there")
    if (young := _SETTLED_NS - (time.time_ns() - info.st_ctime_ns)) > 0:
        time.sleep(min(young, _SETTLED_NS) / 1e9)
    sha256, _, after = hasher.of_path(path)
    if sha256 is None:
        raise UnusualFileError("changed while it was read")
    if isinstance(wanted, str) and wanted != sha256:
        return {"sha256": wanted, "stat": []}
    return {"sha256": sha256, "stat": stat_tuple(after)}


def release_paths(release: str | None) -> list[str]:
    """Every regular file of a release, its provenance.json included; none when it is gone."""
    if release is None or not rig_store.RELEASE_ID.fullmatch(release):
        return []
    base = f"{rig_store.ROOT}/releases/{release}"
    return [path for path in rig_store.walk(base) if not Path(path).is_symlink()]


def former_of(release: str, given: str | None, before: Any) -> str | None:
    """The release to roll back to: the given one, else what the last record says."""
    if given is not None or not isinstance(before, dict):
        return given
    last = before.get("release")
    former = before.get("former-release") if last == release else last
    if not isinstance(former, str) or not rig_store.RELEASE_ID.fullmatch(former):
        return None
    return former if Path(rig_store.ROOT, "releases", former).is_dir() else None


def left_over(before: Any, files: dict[str, Any]) -> list[str]:
    """Settings that an earlier apply wrote, that are not wanted any more, and that are still there."""
    return sorted(name for name in set(rig_store.settings_of(before)) if name not in files and Path(name).exists())


def as_dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def compose(params: dict[str, Any], before: Any, state: str) -> dict[str, Any]:
    """The new record. Only a former record whose digest holds is believed."""
    trusted = before if state == "ok" else None
    hasher = Hasher(trusted.get("files") if trusted else None)
    former = former_of(params["release"], params["former_release"], before)
    files: dict[str, Any] = {}
    paths = [*release_paths(params["release"]), *params["files"]]
    for path in sorted({*paths, *release_paths(former)}):
        try:
            files[path] = entry_of(path, hasher, params["expected"].get(path))
        except UnusualFileError as error:
            raise UnusualFileError(f"{path} {error}") from error
    record = {
        "schema": 1,
        "host": params["host"],
        "applied-at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "applied-from": params["applied_from"],
        "llamarig": params["llamarig"],
        "run": params["run"],
        "release": params["release"],
        "former-release": former,
        "gpus": params["gpus"] if params["gpus"] is not None else as_dict(trusted and trusted.get("gpus")),
        "files": files,
        "former": {"files": left_over(before, files)},
    }
    return record | {"digest": canonical_digest(record)}


def same(before: Any, record: dict[str, Any]) -> bool:
    """Whether the record on the host already says everything but when and by whom it was written."""
    return isinstance(before, dict) and all(before.get(key) == record[key] for key in record if key not in _RENEWED)


def main() -> None:
    text = {"type": "str", "required": True}
    module = AnsibleModule(
        argument_spec={
            "host": text,
            "release": text,
            "former_release": {"type": "str"},
            "run": text,
            "applied_from": text,
            "llamarig": text,
            "gpus": {"type": "dict"},
            "files": {"type": "list", "elements": "str", "default": []},
            "expected": {"type": "dict", "default": {}},
            "force": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    before, state = rig_store.record(rig_store.RECORD)
    try:
        record = compose(module.params, before, state)
        changed = module.params["force"] or state != "ok" or not same(before, record)
        if changed and not module.check_mode:
            content = json.dumps(record, indent=1, sort_keys=True) + "\n"
            write_whole(Path(rig_store.RECORD), content.encode())
    except (UnusualFileError, OSError) as error:
        module.fail_json(msg=f"The record could not be written: {error}")
    module.exit_json(changed=changed, record=record if changed else before)


if __name__ == "__main__":
    main()
