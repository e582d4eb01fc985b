#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0
"""A CUDA toolkit in a prefix of its own: whole, mended, tried, with its manifest, or not there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from ansible.module_utils import rig_cuda_headers, rig_cuda_parts, rig_cuda_probe, rig_cuda_state
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.rig_disk import exchange, identity, sha256_of, sync, write_whole
from ansible.module_utils.rig_files import UnusualFileError
from ansible.module_utils.rig_unpack import RefusedError

DOCUMENTATION = r"""
---
module: rig_toolkit
short_description: Install a CUDA toolkit beside everything else, or check one
description:
  - C(checked) compares a toolkit with its manifest.json and reports C(intact) and C(problems).
  - C(present) puts the parts together beside the prefix, mends the headers where the C library needs it, compiles a
    small source as the build user, writes manifest.json, and renames the whole into place. An intact one of the same
    id is left alone. Parts that were used are removed.
options:
  state: {description: What to do., type: str, choices: [checked, present], default: present}
  prefix: {description: Directory of the toolkit., type: path, required: true}
  id: {description: What decides its content; the manifest has it., type: str, required: true}
  version: {description: Version of the toolkit., type: str, default: ""}
  source: {description: Where its parts come from., type: str, default: ""}
  parts:
    description: The parts in order, each with C(name), C(kind) (wheel, archive, tree, runfile), C(path) and C(sha256).
    type: list
    elements: dict
    default: []
  header_fix: {description: Whether the headers are mended., type: bool, default: false}
  compiler: {description: The host compiler., type: str, default: g++}
  architectures: {description: What the trial compiles for., type: list, elements: str, default: []}
  user: {description: Who compiles it., type: str, default: llamarig-build}
  force: {description: Whether to replace one that agrees with its own manifest., type: bool, default: false}
  deep: {description: Whether to hash every file again., type: bool, default: false}
author: llamarig contributors
"""

EXAMPLES = r"""
- name: Install the toolkit
  rig_toolkit:
    prefix: /opt/llamarig/cuda/13.0.88
    id: "{{ wanted.id }}"
    version: 13.0.88
    source: wheels
    parts: "{{ pushed.parts }}"
    compiler: g++-14
    architectures: [120a-real, 89-real]
"""

RETURN = r"""
intact: {description: Whether the toolkit is whole., type: bool, returned: success}
problems: {description: What is wrong with it., type: list, returned: success}
nvcc: {description: What nvcc says of itself., type: str, returned: when installed}
"""


def problems_of(prefix: str, wanted: str, deep: bool) -> list[str]:
    """What keeps the toolkit from being the wanted one; empty when it is."""
    if not Path(prefix).is_dir():
        return ["it is not there"]
    try:
        manifest, _ = rig_cuda_state.read_manifest(prefix)
        if manifest["id"] != wanted:
            return ["it was made of other parts"]
        return rig_cuda_state.differences(prefix, manifest, deep)
    except (UnusualFileError, OSError) as error:
        return [f"{rig_cuda_state.MANIFEST}: {error}"]


def _verified(part: dict[str, Any]) -> Path:
    path = Path(part["path"])
    try:
        got = sha256_of(path)
    except OSError as error:
        raise RefusedError(f"part {part['name']} cannot be read: {error}") from error
    if got != part["sha256"]:
        # What is wrong is not kept: the next run has to bring it anew.
        path.unlink(missing_ok=True)
        raise RefusedError(f"part {part['name']} has sha256 {got}, expected {part['sha256']}")
    return path


def _build(params: dict[str, Any], target: Path) -> str:
    """The whole toolkit in ``target``; what nvcc says of itself."""
    tree = rig_cuda_parts.Tree(target)
    for part in params["parts"]:
        path = _verified(part)
        try:
            rig_cuda_parts.add(tree, part["kind"], path)
        except RefusedError as error:
            raise RefusedError(f"part {part['name']} is refused: {error}") from error
    tree.finish()
    if not (target / "bin/nvcc").is_file():
        raise RefusedError("the parts hold no nvcc: bin/nvcc")
    mended = rig_cuda_headers.mend(target) if params["header_fix"] else None
    nvcc = rig_cuda_probe.probe(target, params["compiler"], params["architectures"], params["user"])
    files, links, _ = rig_cuda_state.entries(str(target))
    manifest = {
        "schema": 1,
        "id": params["id"],
        "version": params["version"],
        "source": params["source"],
        "parts": [{key: part[key] for key in ("name", "kind", "sha256")} for part in params["parts"]],
        "header-fix": mended,
        "nvcc": nvcc,
        "tried-with": {"compiler": params["compiler"], "architectures": params["architectures"]},
        "links": links,
        "files": {
            name: {"sha256": sha256_of(target / name), "stat": identity(target / name)} for name in sorted(files)
        },
    }
    write_whole(target / rig_cuda_state.MANIFEST, json.dumps(manifest, indent=1, sort_keys=True).encode())
    return nvcc


def _install(params: dict[str, Any], prefix: Path) -> str:
    target = prefix.with_name(f".{prefix.name}.tmp")
    shutil.rmtree(target, ignore_errors=True)
    prefix.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    target.mkdir(mode=0o755)
    try:
        nvcc = _build(params, target)
        os.sync()
        if prefix.exists():
            exchange(target, prefix)
        else:
            target.rename(prefix)
        sync(prefix.parent)
    finally:
        shutil.rmtree(target, ignore_errors=True)
    for part in params["parts"]:
        Path(part["path"]).unlink(missing_ok=True)
    return nvcc


def _run(module: AnsibleModule) -> dict[str, Any]:
    params = module.params
    problems = problems_of(params["prefix"], params["id"], params["deep"])
    replace = bool(problems) or params["force"]
    if params["state"] == "checked" or not replace:
        return {"changed": False, "intact": not problems, "problems": problems}
    if module.check_mode:
        return {"changed": True, "intact": False, "problems": problems}
    nvcc = _install(params, Path(params["prefix"]))
    return {"changed": True, "intact": True, "problems": problems, "nvcc": nvcc}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["checked", "present"], "default": "present"},
            "prefix": {"type": "path", "required": True},
            "id": {"type": "str", "required": True},
            "version": {"type": "str", "default": ""},
            "source": {"type": "str", "default": ""},
            "parts": {"type": "list", "elements": "dict", "default": []},
            "header_fix": {"type": "bool", "default": False},
            "compiler": {"type": "str", "default": "g++"},
            "architectures": {"type": "list", "elements": "str", "default": []},
            "user": {"type": "str", "default": "llamarig-build"},
            "force": {"type": "bool", "default": False},
            "deep": {"type": "bool", "default": False},
        },
        required_if=[("state", "present", ["parts", "architectures"])],
        supports_check_mode=True,
    )
    os.umask(0o022)
    try:
        module.exit_json(**_run(module))
    except (RefusedError, OSError, KeyError, subprocess.TimeoutExpired) as error:
        module.fail_json(msg=f"CUDA toolkit {module.params['version']}: {error}")


if __name__ == "__main__":
    main()
