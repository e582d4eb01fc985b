"""Users that the role base made for services, and whether anything of theirs is left outside our trees."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

from ansible.module_utils.rig_files import read_kernel
from ansible.module_utils.rig_gc_uses import User
from ansible.module_utils.rig_system import users as accounts

_NAME = re.compile(r"llama-[a-z][a-z0-9-]{0,25}")
"""``llama-SERVICE``, in the 32 characters of a user name."""
_SYSTEM = range(1, 1000)
"""Ids of system users on Debian (adduser.conf's and login.defs' SYS_UID_MAX)."""
_LOCAL = {
    "ext2",
    "ext3",
    "ext4",
    "xfs",
    "btrfs",
    "f2fs",
    "zfs",
    "bcachefs",
    "overlay",
    "tmpfs",
    "jfs",
    "vfat",
    "reiserfs",
}
UNITS = "/etc/systemd/system"
PATIENCE_S = 60.0


def made_by_us(wanted: Collection[str], root: str = "") -> dict[str, dict[str, Any]]:
    """Users of no service that is wanted, which are in every respect as the role makes them."""
    asked = [name for name in _names(f"{root}/etc/passwd") if _NAME.fullmatch(name) and name not in wanted]
    found = accounts(asked, root)
    return {name: account for name, account in found.items() if account is not None and _ours(name, account)}


def _names(table: str) -> list[str]:
    """The names in passwd or group."""
    text = Path(table).read_text(encoding="utf-8", errors="surrogateescape")
    return [line.partition(":")[0] for line in text.splitlines()]


def _ours(name: str, account: dict[str, Any]) -> bool:
    return (
        account["uid"] in _SYSTEM
        and account["group"] == name
        and account["home"] == "/nonexistent"
        and account["shell"] == "/usr/sbin/nologin"
        and bool(account["locked"])
    )


def describe(
    found: dict[str, dict[str, Any]], running: dict[int, User], trees: list[str], *, search: bool
) -> list[dict[str, Any]]:
    """Users as things that may go, or with what keeps them; ``search``: their files are looked for, too."""
    left = files_of({account["uid"] for account in found.values()}, trees) if search and found else {}
    things = []
    for name, account in found.items():
        unit = any(os.path.lexists(f"{UNITS}/{name}.service{end}") for end in ("", ".d"))
        odd = f"the unit {name}.service is there" if unit else left.get(account["uid"], "")
        things.append({
            "kind": "user", "path": name, "bytes": 0, "id": [account["uid"], 0], "odd": odd,
            "used": running.get(account["uid"]), "target": "",
        })  # fmt: skip
    return things


def files_of(uids: set[int], trees: list[str], start: str = "/", patience_s: float = PATIENCE_S) -> dict[int, str]:
    """What each of these users owns on the local file systems, outside of our trees: the first file that is found."""
    end = time.monotonic() + patience_s
    mounts = _local_mounts()
    todo, found = [start], dict[int, str]()
    while todo and len(found) < len(uids):
        if time.monotonic() > end:
            late = f"its files could not all be looked for within {patience_s:.0f} s"
            return dict.fromkeys(uids, late) | found
        place = todo.pop()
        if place in trees:
            continue
        try:
            with os.scandir(place) as entries:
                for entry in entries:
                    info = _stat(entry)
                    if info is None:
                        continue
                    if info.st_uid in uids:
                        found.setdefault(info.st_uid, f"it owns {entry.path}")
                    if stat.S_ISDIR(info.st_mode) and mounts.get(entry.path, "ext4") in _LOCAL:
                        todo.append(entry.path)
        except (FileNotFoundError, NotADirectoryError):
            continue  # it went away meanwhile
        except OSError as error:
            return dict.fromkeys(uids, f"{place} cannot be searched for its files: {error.strerror}") | found
    return found


def _stat(entry: os.DirEntry[str]) -> os.stat_result | None:
    try:
        return entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None


def _local_mounts() -> dict[str, str]:
    """Mount point and type of every file system that is mounted."""
    found = {}
    for line in read_kernel("/proc/self/mountinfo").decode("utf-8", "surrogateescape").splitlines():
        before, _, after = line.partition(" - ")
        found[before.split()[4]] = after.split()[0]
    return found


def remove(name: str) -> None:
    """Remove a user and the group of its name; OSError with the tools' own words."""
    for tool, look in (("/usr/sbin/userdel", "/etc/passwd"), ("/usr/sbin/groupdel", "/etc/group")):
        if name not in _names(look):
            continue  # userdel takes the group of the same name along where login.defs says so
        done = subprocess.run([tool, name], capture_output=True, text=True, check=False)  # noqa: S603 - no shell, a name of our form
        if done.returncode != 0:
            raise OSError(done.stderr.strip() or f"{tool} ended with {done.returncode}")
