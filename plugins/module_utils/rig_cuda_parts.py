"""Put a CUDA toolkit together from its parts: wheels, archives, a runfile, or the tar of a prepared tree.

Every part comes from somebody else and is read as strictly as a source archive (rig_unpack): regular files,
directories and links that stay inside, never setuid, nothing twice with another content. All parts end in one layout:
``bin``, ``include``, ``lib``, ``nvvm``, with ``lib64`` as a link to ``lib``.
"""

from __future__ import annotations

import os
import re
import stat
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO

from ansible.module_utils.rig_disk import open_plain, sha256_of
from ansible.module_utils.rig_tar_headers import bounded, members
from ansible.module_utils.rig_unpack import Limits, RefusedError, checked_link, checked_name, make_links, refuse_kind

Place = Callable[[PurePosixPath], "PurePosixPath | None"]
"""Where a member of a part lies in the toolkit; None for what does not belong there."""

LIMITS = Limits(files=60_000, file_bytes=3 << 30, total_bytes=16 << 30)
COMPONENTS = ("cuda_nvcc", "cuda_cudart", "cuda_cccl", "cuda_crt", "libnvvm", "libcublas")
"""As llamarig/catalog/toolkits.yml names them for lists of archives; a runfile holds a dozen more."""
TOPS = ("bin", "include", "lib", "nvvm")
_LIBRARY = re.compile(r"^(lib[\w+-]+\.so)(\.\d+)+$")
_TARGET = ("targets", "x86_64-linux")
_HEAD = 1 << 20
"""A makeself header is shorter than this."""
_PACKED = (b"\x1f\x8b", b"\xfd7zXZ", b"BZh")
_SKIP = re.compile(rb'^\s*(?:skip="?|offset=`head -n )(\d{1,6})\b', re.MULTILINE)
"""Where makeself says it: in a variable, or in versions 2.1.4 to 2.4.1, of which NVIDIA's are, in a command."""


def of_layout(path: PurePosixPath) -> PurePosixPath | None:
    """A path of the vendor's trees in the one layout: ``targets/x86_64-linux/lib`` and ``lib64`` are ``lib``."""
    parts = path.parts
    if parts[:2] == _TARGET:
        parts = parts[2:]
    if parts and parts[0] == "lib64":
        parts = ("lib", *parts[1:])
    return PurePosixPath(*parts) if parts and parts[0] in TOPS else None


def of_wheel(path: PurePosixPath) -> PurePosixPath | None:
    """``nvidia/cu13/bin/nvcc`` is ``bin/nvcc``; what a wheel says about itself is left out."""
    return of_layout(PurePosixPath(*path.parts[2:])) if path.parts[0] == "nvidia" else None


def of_archive(path: PurePosixPath) -> PurePosixPath | None:
    """Below the single top directory of a redistributable archive."""
    return of_layout(PurePosixPath(*path.parts[1:]))


def of_runfile(path: PurePosixPath) -> PurePosixPath | None:
    """``builds/cuda_nvcc/bin/nvcc``: of all that the installer could copy what builds the engine, and no driver."""
    wanted = path.parts[0] == "builds" and path.parts[1:2] and path.parts[1] in COMPONENTS
    return of_layout(PurePosixPath(*path.parts[2:])) if wanted else None


@dataclass
class Tree:
    """A toolkit on the way."""

    dest: Path
    limits: Limits = LIMITS
    files: int = 0
    total: int = 0
    links: dict[PurePosixPath, str] = field(default_factory=dict)

    def write(self, source: IO[bytes], path: PurePosixPath, size: int, executable: bool) -> None:
        """One file. A second one of the same name must have the same content: parts overlap in their licences only."""
        self.files += 1
        self.total += size
        if self.files > self.limits.files or self.total > self.limits.total_bytes or size > self.limits.file_bytes:
            raise RefusedError(f"it unfolds to more than {self.limits.files} files or {self.limits.total_bytes} bytes")
        target = self.dest / path
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = target.with_name(f".{target.name}.part")
        # Programs must be executable for the build user; some parts have them for their owner alone.
        mode = 0o755 if executable or path.parent.name == "bin" else 0o644
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(beside, flags, mode), "wb") as file:
            left = size
            while left:
                block = source.read(min(left, 1 << 20))
                if not block:
                    raise RefusedError(f"member {str(path)!r} ends early")
                file.write(block)
                left -= len(block)
            os.fchmod(file.fileno(), mode)
        if target.exists() and sha256_of(target) != sha256_of(beside):
            raise RefusedError(f"two parts hold {str(path)!r} with different contents")
        beside.replace(target)

    def finish(self) -> None:
        """The links, those that the parts bring and those that the engine's build needs, none of them leading out."""
        made = [(path, target) for path, target in self.links.items() if not (self.dest / path).exists()]
        make_links(self.dest, made)
        if not os.path.lexists(self.dest / "lib64"):
            (self.dest / "lib64").symlink_to("lib")
        library = self.dest / "lib"
        for path in sorted(library.iterdir()) if library.is_dir() else ():
            match = _LIBRARY.match(path.name)
            if match and not os.path.lexists(library / match[1]):
                (library / match[1]).symlink_to(path.name)


def add(tree: Tree, kind: str, part: Path) -> None:
    """Add one part of a kind that :data:`KINDS` names. Raises :class:`RefusedError` with what is wrong with it."""
    with os.fdopen(open_plain(part), "rb") as file:
        KINDS[kind](tree, file)


def _wheel(tree: Tree, file: IO[bytes]) -> None:
    try:
        with zipfile.ZipFile(file) as archive:
            for info in archive.infolist():
                place = of_wheel(checked_name(info.filename))
                mode = info.external_attr >> 16
                if place is None or info.is_dir():
                    continue
                if stat.S_IFMT(mode) not in (0, stat.S_IFREG) or mode & 0o7000:
                    raise RefusedError(f"member {info.filename[:200]!r} is no plain file")
                with archive.open(info) as source:
                    tree.write(source, place, info.file_size, bool(mode & 0o111))
    except (zipfile.BadZipFile, NotImplementedError, EOFError, OSError) as error:
        raise RefusedError(f"it is not a whole wheel: {error}") from error


def _tar(tree: Tree, file: IO[bytes], place: Place) -> None:
    try:
        with tarfile.open(fileobj=file, mode="r|*", tarinfo=bounded()) as tar:
            for member in members(tar):
                name = checked_name(member.name)
                path = place(name) if name.parts else None
                if path is None or member.isdir():
                    continue
                refuse_kind(member)
                if member.issym():
                    _link(tree, path, member.linkname)
                elif (source := tar.extractfile(member)) is not None:
                    tree.write(source, path, member.size, bool(member.mode & 0o111))
    except (tarfile.TarError, EOFError, OSError, ValueError, OverflowError, RecursionError) as error:
        raise RefusedError(f"it is not a whole tar archive: {error}") from error


def _link(tree: Tree, path: PurePosixPath, target: str) -> None:
    """A link between libraries is kept; one between the vendor's own directories is what the one layout undoes."""
    if len(path.parts) == 1 or PurePosixPath(target).parts[:1] == ("targets",):
        return
    tree.links[path] = checked_link(path, target)


def _runfile(tree: Tree, file: IO[bytes]) -> None:
    """The tar behind the installer's script. The script is never run: it says behind how many lines the tar begins."""
    head = file.read(_HEAD)
    found = set(_SKIP.findall(head))
    if not head.startswith(b"#!") or len(found) != 1:
        raise RefusedError("it is no self-extracting archive: its script does not say where the archive begins")
    lines = int(found.pop())
    # Versions of makeself count the script's last line or not.
    begins = [at for at in (_behind(head, lines - 1), _behind(head, lines)) if _is_packed(head, at)]
    if not begins:
        raise RefusedError(f"no tar begins behind the {lines} lines of its script")
    file.seek(begins[0])
    _tar(tree, file, of_runfile)


def _behind(head: bytes, lines: int) -> int:
    """Offset behind so many lines; 0 when there are fewer."""
    at = 0
    for _ in range(lines):
        at = head.find(b"\n", at) + 1
        if at == 0:
            break
    return at


def _is_packed(head: bytes, at: int) -> bool:
    return at > 0 and (head[at:].startswith(_PACKED) or head[at + 257 : at + 262] == b"ustar")


KINDS: dict[str, Callable[[Tree, IO[bytes]], None]] = {
    "wheel": _wheel,
    "archive": lambda tree, file: _tar(tree, file, of_archive),
    "tree": lambda tree, file: _tar(tree, file, of_archive),
    "runfile": _runfile,
}
