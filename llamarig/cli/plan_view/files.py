"""Where pages lie: one file, or one a host in a directory; nothing that is not such a page is replaced."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from llamarig.errors import RigError

MARK = "<!-- made by llamarig plan -->"
"""Stands near the top of each page."""
_HEAD_BYTES = 4096
_READABLE = 0o644


def page_paths(target: Path, hosts: Sequence[str]) -> list[Path]:
    """The file of each host's page: ``target`` itself for one host, unless it is a directory; else ``HOST.html`` in it.

    Makes the directory for several hosts. Raises :class:`RigError` for what is neither file nor directory, and for a
    file that is no such page.
    """
    if len(hosts) == 1 and not target.is_dir():
        paths = [target]
    else:
        _directory(target)
        paths = [target / f"{host}.html" for host in hosts]
    for path in paths:
        _replaceable(path)
    return paths


def _directory(path: Path) -> None:
    try:
        path.mkdir(exist_ok=True)
    except FileExistsError:
        raise RigError(
            what="--html is not a directory", where=str(path), fix="with several hosts, name a directory"
        ) from None
    except OSError as error:
        raise _unwritable(path, error) from error


def _replaceable(path: Path) -> None:
    """A page that was written before may be replaced; anything else is somebody's."""
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise RigError(what="--html names a link or no plain file", where=str(path), fix="name a new file")
    try:
        with path.open("rb") as stream:
            head = stream.read(_HEAD_BYTES)
    except FileNotFoundError:
        return
    except OSError as error:
        raise _unwritable(path, error) from error
    if MARK.encode() not in head:
        raise RigError(
            what="the file is there and was not written by `llamarig plan --html`",
            where=str(path),
            fix="name a new file, or remove this one",
        )


def write_page(path: Path, text: str) -> None:
    """Write a page, whole or not at all. Raises :class:`RigError` where that cannot be done."""
    temporary = None
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
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


def _unwritable(path: Path, error: OSError) -> RigError:
    return RigError(
        what="the page cannot be written",
        where=str(path),
        why=error.strerror or str(error),
        fix="name a file in a directory that is there and that you may write in",
    )
