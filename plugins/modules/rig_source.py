#!/usr/bin/python
"""Turn a pushed source archive and its patches into a clean, hashed tree."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import IO, Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.rig_disk import open_plain, sha256_of, write_whole
from ansible.module_utils.rig_tree import apply_patch, tree_sha256
from ansible.module_utils.rig_unpack import RefusedError, unpack
from ansible.module_utils.rig_user import ChildFailedError, as_user

DOCUMENTATION = r"""
module: rig_source
short_description: Unpack and patch a source tree
description:
  - Unpacks a source archive, checked by sha256, as the build user, applies patches in order with no fuzz,
    and reports the hash of the tree.
  - A tree that is there already, from the same archive and patches and with the same hash, is left alone.
  - Only one build directory is kept; those that failed builds of other releases left are removed, their jobs ended.
options:
  archive: {description: Path of the archive on the host., type: path, required: true}
  sha256: {description: What the archive must hash to., type: str, required: true}
  subdir: {description: Directory of the tree below the archive's top directory., type: str, default: ""}
  patches:
    description: Patches in order, each with C(name), C(path) and C(sha256).
    type: list
    elements: dict
    default: []
  dest: {description: The build directory; the tree comes to C(src) in it., type: path, required: true}
  user: {description: The build user., type: str, required: true}
  job_prefix: {description: What the names of build jobs begin with., type: str, default: llamarig-build-}
"""

RETURN = r"""
tree_sha256: {description: sha256 over sorted path, mode and content., type: str, returned: success}
"""


def _verified(path: str, sha256: str, what: str) -> None:
    try:
        got = sha256_of(Path(path))
    except OSError as error:
        raise RefusedError(f"{what} cannot be read: {error}") from error
    if got != sha256:
        # What is wrong is not kept: the next run has to bring it anew.
        Path(path).unlink(missing_ok=True)
        raise RefusedError(f"{what} has sha256 {got}, expected {sha256}")


def _make_tree(archive: IO[bytes], subdir: str, patches: list[tuple[str, bytes]], work: Path) -> str:
    """Unpack and patch in ``work``, as the build user; returns the tree's hash."""
    try:
        unpack(archive, work, subdir)
    except RefusedError as error:
        raise RefusedError(f"the source archive is refused: {error}") from error
    # Source distributions carry the `.git` file of a submodule that is not there; git and CMake trip over it.
    dangling = work / ".git"
    if dangling.is_file():
        dangling.unlink()
    for name, patch in patches:
        try:
            apply_patch(work, patch)
        except RefusedError as error:
            raise RefusedError(f"patch {name} is refused: {error}") from error
    return tree_sha256(work)


def _held(params: dict[str, Any], inputs: dict[str, Any], note: Path) -> str | None:
    """The hash of the tree that is there, when it is the wanted one and untouched."""
    try:
        known = json.loads(note.read_text())
        if known["inputs"] != inputs:
            return None
        found = as_user(params["user"], lambda: tree_sha256(Path(params["dest"]) / "src"))
    except (OSError, ValueError, KeyError, TypeError, ChildFailedError):
        return None
    return str(found) if found == known["tree"] else None


def _remove_others(dest: Path, job_prefix: str) -> None:
    for other in dest.parent.iterdir() if dest.parent.is_dir() else ():
        if other != dest and other.is_dir() and not other.is_symlink():
            unit = f"{job_prefix}{other.name}.service"
            for verb in ("stop", "reset-failed"):
                subprocess.run(["/usr/bin/systemctl", verb, "--", unit], capture_output=True, check=False)  # noqa: S603 - no shell, a name of ours
            shutil.rmtree(other)


def _run(module: AnsibleModule) -> dict[str, Any]:
    params = module.params
    inputs = {
        "source": params["sha256"],
        "subdir": params["subdir"],
        "patches": [patch["sha256"] for patch in params["patches"]],
    }
    dest = Path(params["dest"])
    note = dest / "source.json"
    held = _held(params, inputs, note)
    if held or module.check_mode:
        return {"changed": held is None, "tree_sha256": held or ""}
    _verified(params["archive"], params["sha256"], "the source archive")
    for patch in params["patches"]:
        _verified(patch["path"], patch["sha256"], f"patch {patch['name']}")
    _remove_others(dest, params["job_prefix"])
    note.unlink(missing_ok=True)
    tree = dest / "src"
    shutil.rmtree(tree, ignore_errors=True)
    dest.mkdir(mode=0o755, parents=True, exist_ok=True)
    tree.mkdir(mode=0o755)
    shutil.chown(tree, params["user"], params["user"])
    # Read here, used there: the build user may not look into the directory where files arrive.
    patches = [(str(patch["name"]), Path(patch["path"]).read_bytes()) for patch in params["patches"]]
    with os.fdopen(open_plain(Path(params["archive"])), "rb") as archive:
        digest = str(as_user(params["user"], lambda: _make_tree(archive, params["subdir"], patches, tree)))
    write_whole(note, json.dumps({"inputs": inputs, "tree": digest}).encode())
    return {"changed": True, "tree_sha256": digest}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "archive": {"type": "path", "required": True},
            "sha256": {"type": "str", "required": True},
            "subdir": {"type": "str", "default": ""},
            "patches": {"type": "list", "elements": "dict", "default": []},
            "dest": {"type": "path", "required": True},
            "user": {"type": "str", "required": True},
            "job_prefix": {"type": "str", "default": "llamarig-build-"},
        },
        supports_check_mode=True,
    )
    os.umask(0o022)
    try:
        module.exit_json(**_run(module))
    except (RefusedError, ChildFailedError, OSError, KeyError) as error:
        module.fail_json(msg=str(error), rig={"what": str(error)})


if __name__ == "__main__":
    main()
