"""When what we manage last changed on the host, as its file system tells: nobody can set a ctime by hand."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ansible.module_utils.rig_files import UnusualFileError, lstat

ACCOUNTS = ("/etc/passwd", "/etc/shadow", "/etc/group")
PACKAGES = "/var/lib/dpkg/status"


def changed(paths: Iterable[str]) -> dict[str, float]:
    """Path -> seconds of its ctime (links are not followed); of what is not there, the ctime of the nearest directory
    above it, where its removal was the last change or an earlier one. What cannot be looked at is left out."""
    found: dict[str, float] = {}
    for path in paths:
        try:
            info = next(filter(None, map(lstat, (path, *map(str, Path(path).parents)))), None)
        except (UnusualFileError, OSError):
            continue
        if info is not None:
            found[path] = info.st_ctime
    return found
