"""A prepared CUDA toolkit in a directory as one file that can be pinned."""

from __future__ import annotations

import tarfile
from pathlib import Path

from llamarig.errors import RigError, naming

NVCC = "bin/nvcc"
"""A directory with this in it is a prepared tree."""


def lists_in(folder: Path) -> list[Path]:
    """The lists of redistributable archives that lie in a directory."""
    return sorted(folder.glob("redistrib_*.json"))


def pack_tree(folder: Path, target: Path) -> Path:
    """A tar of a prepared tree that depends on names, contents, links and execute bits alone, so that it can be pinned.

    Raises :class:`RigError` for what is neither file, directory nor link.
    """

    def plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
        if not (info.isreg() or info.isdir() or info.issym()):
            raise RigError("a prepared toolkit holds files, directories and links only", f"{folder}: {info.name}")
        info.uid = info.gid = info.mtime = 0
        info.uname = info.gname = ""
        info.mode = 0o755 if info.isdir() or info.mode & 0o111 else 0o644
        return info

    with naming(target), tarfile.open(target, "w", format=tarfile.PAX_FORMAT, dereference=False) as tar:
        for path in sorted(folder.rglob("*")):
            info = tar.gettarinfo(path, arcname=f"toolkit/{path.relative_to(folder)}")
            if info is None:
                raise RigError("a prepared toolkit holds files, directories and links only", str(path))
            if info.islnk():
                # Another name of a file that came before: a copy says the same without leaning on the order.
                info.type, info.size, info.linkname = tarfile.REGTYPE, path.stat().st_size, ""
            plain(info)
            if info.isreg():
                with path.open("rb") as stream:
                    tar.addfile(info, stream)
            else:
                tar.addfile(info)
    return target
