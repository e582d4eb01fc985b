#!/usr/bin/python
"""Whether everything that is about to be brought to a host fits its disks, before anything is touched."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: rig_budget
short_description: Compare what is missing with the free space
description:
  - Adds up the bytes of all models that are missing, of the source, the build and the release, on each file system,
    and fails with the numbers when they do not fit. It changes nothing.
options:
  release: {description: The wanted release; none when it is not looked at., type: dict, default: {}}
  models: {description: The wanted models., type: list, elements: dict, default: []}
  releases: {description: Directory of the releases., type: path, default: /opt/llamarig/releases}
  build_root: {description: Where sources are unpacked and built., type: path, default: /var/lib/llamarig/build}
  toolkit_mib: {description: Space that a CUDA toolkit and its parts take below C(build_root)., type: int, default: 0}
  build_mib: {description: Space that source and build take, in MiB., type: int, default: 1024}
  release_mib: {description: Space that a release takes, in MiB., type: int, default: 128}
  reserve_mib: {description: Space that must stay free on each file system, in MiB., type: int, default: 256}
"""

RETURN = r"""
filesystems: {description: What is needed and free on each file system, in MiB., type: list, returned: always}
"""

MIB = 1 << 20


def existing(path: Path) -> Path:
    """The path or its nearest ancestor that exists."""
    while not path.exists() and path != path.parent:
        path = path.parent
    return path


def size_of(path: Path) -> int:
    """Bytes of a file; 0 when it is not there."""
    try:
        return path.stat(follow_symlinks=False).st_size
    except OSError:
        return 0


def needs(params: dict[str, Any]) -> list[tuple[Path, int, str]]:
    """Where, how many bytes and for what. What has arrived already is not needed again."""
    found: list[tuple[Path, int, str]] = []
    release = params["release"]
    if params.get("toolkit_mib"):
        found.append((Path(params["build_root"]), params["toolkit_mib"] * MIB, "CUDA toolkit and its parts"))
    if release and not (Path(params["releases"]) / release["id"] / "provenance.json").exists():
        found += _copied(params) if release.get("artifact") else _built(params)
    for model in params["models"]:
        # Beside the files by content, as the role models has it: on the file system of the models.
        incoming = Path(model["path"]).parent.parent / "incoming"
        missing = _missing(model, incoming)
        if missing:
            found.append((incoming, missing, f"model {Path(model['links'][0]).name}"))
    return found


def _built(params: dict[str, Any]) -> list[tuple[Path, int, str]]:
    return [
        (Path(params["build_root"]), params["build_mib"] * MIB, "source and build"),
        (Path(params["releases"]), params["release_mib"] * MIB, f"release {params['release']['id']}"),
    ]


def _copied(params: dict[str, Any]) -> list[tuple[Path, int, str]]:
    """A packed release lies beside the builds until it is unpacked, and a tar without compression grows no more."""
    artifact, name = params["release"]["artifact"], params["release"]["id"]
    incoming, size = Path(params["build_root"]).parent / "incoming", int(artifact["size"])
    arrived = size_of(incoming / f"{artifact['sha256']}.part")
    return [
        (incoming, max(0, size - arrived), "the packed release"),
        (Path(params["releases"]), size, f"release {name}"),
    ]


def _missing(model: dict[str, Any], incoming: Path) -> int:
    size, path = int(model["size"]), Path(model["path"])
    if size_of(path) == size or _shareable(model, incoming):
        return 0
    return max(0, size - size_of(incoming / f"{model['sha256']}.part"))


def _shareable(model: dict[str, Any], incoming: Path) -> bool:
    """Whether the file lies on the host already and will only be linked (as rig_model decides)."""
    origin = model.get("origin", {})
    if origin.get("kind") != "host-path":
        return False
    try:
        info = Path(origin["path"]).stat()
    except OSError:
        return False
    return info.st_uid == 0 and not info.st_mode & 0o022 and info.st_dev == existing(incoming).stat().st_dev


def _mount_of(path: Path) -> Path:
    while not path.is_mount() and path != path.parent:
        path = path.parent
    return path


def budget(entries: list[tuple[Path, int, str]], reserve: int) -> list[dict[str, Any]]:
    """The entries summed by file system, each with what is free there."""
    sums: dict[int, dict[str, Any]] = {}
    for path, count, what in entries:
        place = existing(path)
        space = os.statvfs(place)
        entry = sums.setdefault(
            place.stat().st_dev,
            {
                "mount": str(_mount_of(place)),
                "free-mib": space.f_bavail * space.f_frsize / MIB,
                "needed-mib": 0.0,
                "for": [],
            },
        )
        entry["needed-mib"] += count / MIB
        entry["for"].append(f"{what} {count / MIB:,.0f} MiB")
    for entry in sums.values():
        entry["fits"] = entry["needed-mib"] + reserve <= entry["free-mib"]
    return list(sums.values())


def sentence(entry: dict[str, Any], reserve: int) -> str:
    """What is needed and what is there, in words and numbers."""
    lacking = entry["needed-mib"] + reserve - entry["free-mib"]
    return (
        f"{entry['mount']}: {entry['needed-mib']:,.0f} MiB are needed and {reserve:,} MiB stay free, "
        f"but {entry['free-mib']:,.0f} MiB are free, {lacking:,.0f} MiB too few ({'; '.join(entry['for'])})"
    )


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "release": {"type": "dict", "default": {}},
            "toolkit_mib": {"type": "int", "default": 0},
            "models": {"type": "list", "elements": "dict", "default": []},
            "releases": {"type": "path", "default": "/opt/llamarig/releases"},
            "build_root": {"type": "path", "default": "/var/lib/llamarig/build"},
            "build_mib": {"type": "int", "default": 1024},
            "release_mib": {"type": "int", "default": 128},
            "reserve_mib": {"type": "int", "default": 256},
        },
        supports_check_mode=True,
    )
    reserve = module.params["reserve_mib"]
    found = budget(needs(module.params), reserve)
    tight = [sentence(entry, reserve) for entry in found if not entry["fits"]]
    if tight:
        module.fail_json(
            msg="The disk is too small; nothing was touched. " + ". ".join(tight)
            + ". fix: free the space, or put models-dir on a bigger file system",
            filesystems=found,
        )  # fmt: skip
    module.exit_json(changed=False, filesystems=found)


if __name__ == "__main__":
    main()
