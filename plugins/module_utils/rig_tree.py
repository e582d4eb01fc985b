"""The identity of a source tree, and patches on it with no fuzz.

The tree hash covers, in byte order of the paths, each entry's git mode, content and
path, so it does not depend on owners, times or the order on disk.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

from ansible.module_utils.rig_disk import sha256_of
from ansible.module_utils.rig_patch import patched_paths
from ansible.module_utils.rig_unpack import RefusedError


def tree_sha256(root: Path) -> str:
    """The sha256 over ``mode sha256 path`` of every file and link below ``root``."""
    lines = sorted(_entries(root).values(), key=lambda line: line.split(b"\0", 1)[1])
    return hashlib.sha256(b"".join(lines)).hexdigest()


def _entries(root: Path) -> dict[str, bytes]:
    """Path below ``root`` -> the line that stands for it in the hash."""
    found = {}
    for folder, folders, names in os.walk(root):
        here = Path(folder)
        for name in [*names, *(entry for entry in folders if (here / entry).is_symlink())]:
            found[str((here / name).relative_to(root))] = _entry(root, here / name)
    return found


def _entry(root: Path, path: Path) -> bytes:
    if path.is_symlink():
        target = os.fsencode(os.readlink(path))  # noqa: PTH115 - the bytes as they stand
        mode, digest = "120000", hashlib.sha256(target).hexdigest()
    else:
        mode = "100755" if path.stat(follow_symlinks=False).st_mode & 0o100 else "100644"
        digest = sha256_of(path)
    return f"{mode} {digest}".encode() + b"\0" + os.fsencode(path.relative_to(root)) + b"\n"


def apply_patch(root: Path, patch: bytes) -> None:
    """Apply one patch below ``root`` or raise :class:`RefusedError` with the tool's own words.

    Whether it may change the build was decided on the controller, before it was sent.
    """
    reviewed = patched_paths(patch.decode("utf-8", "surrogateescape"))
    before = _entries(root)
    # -u: only unified diffs; patch would otherwise hand an ed script to ed, which runs commands.
    command = [
        "patch",
        "-u",
        "-p1",
        "-F0",
        "--batch",
        "--forward",
        "--no-backup-if-mismatch",
        "-r",
        "-",
        "-d",
        str(root),
    ]
    done = subprocess.run(command, input=patch, capture_output=True, check=False)  # noqa: S603 - fixed words and our own path
    if done.returncode != 0:
        said = (done.stdout + done.stderr).decode(errors="replace").strip()
        raise RefusedError(f"it does not apply cleanly:\n{said[-3000:]}")
    after = _entries(root)
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    if beside := changed - reviewed:
        raise RefusedError(f"it changed what it does not name: {', '.join(sorted(beside))[:500]}")
    if idle := reviewed - changed:
        raise RefusedError(f"it names what it did not change: {', '.join(sorted(idle))[:500]}")
