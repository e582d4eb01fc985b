"""The identity of a source tree, and patches on it with no fuzz.

The tree hash covers, in byte order of the paths, each entry's git mode, content and
path, so it does not depend on owners, times or the order on disk.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from pathlib import Path, PurePosixPath

from ansible.module_utils.rig_disk import sha256_of
from ansible.module_utils.rig_unpack import RefusedError

_TARGET = re.compile(r"^(?:---|\+\+\+) (?P<path>[^\t\n]+)")
_MOVE = re.compile(r"^(?:rename|copy) (?:from|to) (?P<path>.+)$")
_HEAD = re.compile(r"^diff --git a/(?P<old>.+) b/(?P<new>.+)$")
_MODE = re.compile(r"^(?:new file mode|new mode|old mode|deleted file mode) (?P<mode>[0-7]+)$")


def tree_sha256(root: Path) -> str:
    """The sha256 over ``mode sha256 path`` of every file and link below ``root``."""
    lines: list[bytes] = []
    for folder, folders, names in os.walk(root):
        here = Path(folder)
        for name in [*names, *(entry for entry in folders if (here / entry).is_symlink())]:
            lines.append(_entry(root, here / name))
    lines.sort(key=lambda line: line.split(b"\0", 1)[1])
    return hashlib.sha256(b"".join(lines)).hexdigest()


def _entry(root: Path, path: Path) -> bytes:
    if path.is_symlink():
        target = os.fsencode(os.readlink(path))  # noqa: PTH115 - the bytes as they stand
        mode, digest = "120000", hashlib.sha256(target).hexdigest()
    else:
        mode = "100755" if path.stat(follow_symlinks=False).st_mode & 0o100 else "100644"
        digest = sha256_of(path)
    return f"{mode} {digest}".encode() + b"\0" + os.fsencode(path.relative_to(root)) + b"\n"


def patched_paths(text: str) -> set[str]:
    """The paths that a patch touches, without their ``a/`` and ``b/``.

    Raises :class:`RefusedError` for a path outside the tree, a link, a submodule, a special mode, or binary content.
    """
    paths: set[str] = set()
    for line in text.splitlines():
        if line.startswith(("GIT binary patch", "Binary files ")):
            raise RefusedError("it holds binary content, which cannot be reviewed")
        if found := _MODE.match(line):
            if found["mode"] not in ("100644", "100755"):
                raise RefusedError(f"it makes a link, submodule or special file (mode {found['mode']})")
        elif found := _HEAD.match(line):
            paths |= {_checked(found["old"]), _checked(found["new"])}
        elif found := _MOVE.match(line):
            paths.add(_checked(found["path"]))
        elif (found := _TARGET.match(line)) and found["path"] != "/dev/null":
            paths.add(_checked(_stripped(found["path"])))
    if not paths:
        raise RefusedError("it names no file")
    return paths


def _stripped(path: str) -> str:
    first, _, rest = path.partition("/")
    if first not in ("a", "b") or not rest:
        raise RefusedError(f"path {path[:200]!r} does not begin with a/ or b/ as git writes it")
    return rest


def _checked(path: str) -> str:
    parts = PurePosixPath(path).parts
    if path.startswith(("/", '"')) or ".." in parts or ".git" in parts:
        raise RefusedError(f"path {path[:200]!r} lies outside the tree")
    return path


def apply_patch(root: Path, patch: bytes) -> None:
    """Apply one patch below ``root`` or raise :class:`RefusedError` with the tool's own words.

    Whether it may change the build was decided on the controller, before it was sent.
    """
    patched_paths(patch.decode(errors="replace"))
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
