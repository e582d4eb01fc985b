"""Where pages lie: one file, or one a host in a directory; nothing that is not such a page is replaced."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Sequence
from pathlib import Path

from llamarig.errors import RigError

MARK = "<!-- made by llamarig plan -->"
"""Stands at the top of each page, on a line of its own below the document's type."""
_LEADING = 64
"""White space that may stand before it."""
_READABLE = 0o644
_PREFIX = 40
"""Characters of a page's name that its unfinished copy bears, so that both fit a directory."""


def page_paths(target: Path, hosts: Sequence[str]) -> list[Path]:
    """The file of each host's page: ``target`` itself for one host, unless it is a directory; else ``HOST.html`` in it.

    Makes the directory for several hosts. Raises :class:`RigError` for what is neither file nor directory, and for a
    file that is no such page.
    """
    if len(hosts) == 1 and not _is_directory(target):
        paths = [target]
    else:
        _directory(target)
        paths = [target / f"{host}.html" for host in hosts]
    for path in paths:
        replaceable(path)
    return paths


def _is_directory(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError as error:
        raise _unwritable(path, error) from error


def _directory(path: Path) -> None:
    try:
        path.mkdir(exist_ok=True)
    except FileExistsError:
        raise RigError(
            what="--html is not a directory", where=str(path), fix="with several hosts, name a directory"
        ) from None
    except OSError as error:
        raise _unwritable(path, error) from error


def replaceable(path: Path, verb: str = "plan") -> None:
    """A page that the same verb has written before may be replaced; anything else is somebody's.

    Raises :class:`RigError` for what is no such page.
    """
    begins = f"<!doctype html>\n{MARK.replace('plan', verb)}\n".encode()
    try:
        kind = path.lstat().st_mode
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        raise _unwritable(path, error) from error
    if not stat.S_ISREG(kind):
        raise RigError(what="--html names a link or no plain file", where=str(path), fix="name a new file")
    try:
        with path.open("rb") as stream:
            head = stream.read(_LEADING + len(begins))
    except FileNotFoundError:
        return
    except OSError as error:
        raise _unwritable(path, error) from error
    if not head.lstrip(b"\r\n").startswith(begins):
        raise RigError(
            what=f"the file is there and was not written by `llamarig {verb} --html`",
            where=str(path),
            fix="name a new file, or remove this one",
        )


def write_page(path: Path, text: str) -> None:
    """Write a page, whole or not at all. Raises :class:`RigError` where that cannot be done."""
    temporary = None
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:_PREFIX]}.")
        temporary = Path(name)
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(_READABLE)
        temporary.replace(path)
        temporary = None
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def _unwritable(path: Path, error: OSError | ValueError) -> RigError:
    return RigError(
        what="the page cannot be written",
        where=str(path),
        why=getattr(error, "strerror", None) or str(error),
        fix="name a file in a directory that is there and that you may write in",
    )
