#!/usr/bin/python
"""A finished build as an immutable release: whole, checked, with its provenance, or not there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.rig_disk import exchange, sha256_of, sync, write_whole
from ansible.module_utils.rig_release_files import copy_build, copy_toolkit, problems_of
from ansible.module_utils.rig_release_run import Terms, check, linked, stand_in
from ansible.module_utils.rig_release_tar import pack, unpack_release
from ansible.module_utils.rig_unpack import RefusedError

DOCUMENTATION = r"""
module: rig_release
short_description: Install a build as a release, or check one
description:
  - C(checked) compares every file of a release with its provenance.json and reports C(intact) and C(problems).
  - C(present) copies programs and libraries of a build beside the releases, with those libraries of the toolkit that
    they link, checks them (all libraries found, the version shows the label), writes provenance.json, and renames the
    whole into place. An intact one is left alone.
  - C(packed) writes an intact release as one plain tar, the same bytes for the same release.
  - C(received) unpacks such a tar beside the releases and checks its hash, every file, its provenance, its libraries
    and its label before it is renamed into place.
  - A release brings the toolkit's libraries along and never the driver's C(libcuda.so.1). Where no driver is, that
    one may be missing, and the server is asked with the toolkit's stand-in for it.
options:
  state: {description: What to do., type: str, choices: [checked, present, packed, received], default: present}
  id: {description: Id of the release., type: str, required: true}
  releases: {description: Directory of the releases., type: path, default: /opt/llamarig/releases}
  build: {description: Directory in which the build left C(bin)., type: path}
  programs: {description: Programs of the release., type: list, elements: str, default: [llama-server]}
  label: {description: What C(--version) must show., type: str, default: ""}
  provenance: {description: Keys of provenance.json that are known before., type: dict, default: {}}
  patches: {description: The patches of the source in order., type: list, elements: dict, default: []}
  force: {description: Whether to replace one that agrees with its own provenance.json., type: bool, default: false}
  user: {description: Who runs the new binary for the checks., type: str, default: llamarig-build}
  cuda: {description: Whether the release needs the driver's library., type: bool, default: false}
  toolkit: {description: Prefix of the toolkit whose libraries it links., type: path}
  archive: {description: The packed release; written by C(packed) and read by C(received)., type: path}
  sha256: {description: Hash of the packed release as the controller has it., type: str}
  size: {description: Bytes of the packed release., type: int}
  inputs: {description: What provenance.json must say the release was built from., type: dict, default: {}}
"""

RETURN = r"""
intact: {description: Whether the release is whole., type: bool, returned: success}
problems: {description: What is wrong with it., type: list, returned: success}
asked: {description: Whether the server itself has shown its label., type: bool, returned: present and received}
sha256: {description: Hash of the packed release., type: str, returned: packed}
size: {description: Bytes of the packed release., type: int, returned: packed}
"""


def _tool(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - fixed words
    except OSError:
        return ""
    return done.stdout.splitlines()[0].strip() if done.stdout else ""


def _provenance(params: dict[str, Any], files: dict[str, str]) -> dict[str, Any]:
    return {
        "schema": 1,
        "release": params["id"],
        "label": params["label"],
        **params["provenance"],
        "patches": [{key: patch[key] for key in ("name", "sha256")} for patch in params["patches"]],
        "compiler": _tool("cc", "--version"),
        "cmake-version": _tool("cmake", "--version").removeprefix("cmake version "),
        "libc": os.confstr("CS_GNU_LIBC_VERSION").split()[-1],  # type: ignore[union-attr] # glibc always says
        "files": files,
    }


def _brought(params: dict[str, Any], target: Path) -> list[str]:
    """Copy what the release's files link of the toolkit; the loader is asked with the toolkit's directories at hand."""
    if not params["toolkit"]:
        return []
    prefix = Path(params["toolkit"])
    with stand_in(prefix) as stub:
        places = [*stub, *(str(prefix / lib) for lib in ("lib", "lib64") if (prefix / lib).is_dir())]
        own = [str(path.relative_to(target)) for path in sorted(target.glob("*/*")) if not path.is_symlink()]
        return copy_toolkit(linked(target, own, params["user"], places), prefix, target)


def _checked(params: dict[str, Any], target: Path, names: list[str]) -> bool:
    toolkit = Path(params["toolkit"]) if params["toolkit"] else None
    return check(target, names, Terms(params["user"], params["label"], params["cuda"], toolkit))


def _made(params: dict[str, Any], target: Path) -> bool:
    """A release out of a build."""
    names = copy_build(Path(params["build"]), params["programs"], target)
    names += _brought(params, target)
    asked = _checked(params, target, names)
    files = {name: sha256_of(target / name) for name in names}
    write_whole(target / "provenance.json", json.dumps(_provenance(params, files), indent=1).encode())
    return asked


def _received(params: dict[str, Any], target: Path) -> bool:
    """A release out of a packed one."""
    wanted = {"release": params["id"], "label": params["label"], "inputs": params["inputs"]}
    files = unpack_release(Path(params["archive"]), params["sha256"], params["size"], wanted, target)
    return _checked(params, target, sorted(files))


def _install(params: dict[str, Any], release: Path) -> bool:
    target = release.with_name(f".{release.name}.tmp")
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(mode=0o755, parents=True)
    try:
        asked = _received(params, target) if params["state"] == "received" else _made(params, target)
        for folder in (target / "bin", target / "lib", target):
            sync(folder)
        if release.exists():
            exchange(target, release)
        else:
            target.rename(release)
        sync(release.parent)
    finally:
        shutil.rmtree(target, ignore_errors=True)
    return asked


def _run(module: AnsibleModule) -> dict[str, Any]:
    params = module.params
    release = Path(params["releases"]) / params["id"]
    if params["state"] == "packed":
        if module.check_mode:
            return {"changed": True, "sha256": "", "size": 0}
        sha256, size = pack(release, Path(params["archive"]))
        return {"changed": True, "sha256": sha256, "size": size}
    problems = problems_of(release) if release.exists() else ["it is not there"]
    replace = bool(problems) or params["force"]
    if params["state"] == "checked" or not replace:
        return {"changed": False, "intact": not problems, "problems": problems}
    answer = {"changed": True, "intact": not module.check_mode, "problems": problems}
    if not module.check_mode:
        answer["asked"] = _install(params, release)
    return answer


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {
                "type": "str",
                "choices": ["checked", "present", "packed", "received"],
                "default": "present",
            },
            "id": {"type": "str", "required": True},
            "releases": {"type": "path", "default": "/opt/llamarig/releases"},
            "build": {"type": "path"},
            "programs": {"type": "list", "elements": "str", "default": ["llama-server"]},
            "label": {"type": "str", "default": ""},
            "provenance": {"type": "dict", "default": {}},
            "patches": {"type": "list", "elements": "dict", "default": []},
            "force": {"type": "bool", "default": False},
            "user": {"type": "str", "default": "llamarig-build"},
            "cuda": {"type": "bool", "default": False},
            "toolkit": {"type": "path"},
            "archive": {"type": "path"},
            "sha256": {"type": "str"},
            "size": {"type": "int"},
            "inputs": {"type": "dict", "default": {}},
        },
        required_if=[
            ("state", "present", ["build", "label"]),
            ("state", "packed", ["archive"]),
            ("state", "received", ["archive", "sha256", "size", "label", "inputs"]),
        ],
        supports_check_mode=True,
    )
    os.umask(0o022)
    try:
        module.exit_json(**_run(module))
    except (RefusedError, OSError, subprocess.TimeoutExpired) as error:
        module.fail_json(msg=str(error))


if __name__ == "__main__":
    main()
