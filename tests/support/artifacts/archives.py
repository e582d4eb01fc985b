"""Source archives as a stranger may build them (composed)."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path


def member(name: str, content: bytes = b"x", **fields: object) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    info.mode = 0o644
    for key, value in fields.items():
        setattr(info, key, value)
    return info, content


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tuple[tarfile.TarInfo, bytes]:
    return member(name, b"", type=kind, linkname=target)


def write(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for info, content in members:
            tar.addfile(info, io.BytesIO(content) if info.isreg() else None)
    return path


def good(path: Path) -> Path:
    """A small tree as a source distribution has it: below a top directory, with a dangling .git file."""
    return write(
        path,
        member("engine-1.0/setup.py"),
        member("engine-1.0/vendor/engine/.git", b"gitdir: ../../.git/modules/engine\n"),
        member("engine-1.0/vendor/engine/src/main.cpp", b"int main() {\n  return 0;\n}\n"),
        member("engine-1.0/vendor/engine/run.sh", b"#!/bin/sh\n", mode=0o775),
        link("engine-1.0/vendor/engine/src/alias.cpp", "main.cpp"),
    )
