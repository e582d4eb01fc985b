"""A release as one plain tar: the same release gives the same bytes, and what comes in is looked through first."""

from __future__ import annotations

import hashlib
import json
import os
import tarfile
from pathlib import Path
from typing import IO, Any

from ansible.module_utils.rig_disk import open_plain, sync
from ansible.module_utils.rig_release_files import FOLDERS, PROVENANCE, problems_of
from ansible.module_utils.rig_unpack import Limits, RefusedError, unpack

LIMITS = Limits(files=1000, file_bytes=4 << 30, total_bytes=8 << 30)
"""The biggest library of a toolkit has 0.5 GiB; a whole CUDA release, 1 GiB."""
_CHUNK = 4 << 20


class _Hashing:
    """A file that is hashed while it is written."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.digest = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        self.size += len(data)
        return self._file.write(data)

    def tell(self) -> int:
        return self.size


def pack(release: Path, target: Path) -> tuple[str, int]:
    """Write an intact release to ``target``, mode 0600; sha256 and size of the tar.

    Owners, times and the order on the disk leave no trace. Raises :class:`RefusedError` when a file differs from
    provenance.json.
    """
    problems = problems_of(release)
    if problems:
        raise RefusedError(f"the release {release.name} is not whole: {'; '.join(problems)[:1000]}")
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            hashing = _Hashing(file)
            with tarfile.open(fileobj=hashing, mode="w|", format=tarfile.PAX_FORMAT) as tar:  # type: ignore[call-overload] # write and tell are all that a stream needs
                _fill(tar, release)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync(target.parent)
    return hashing.digest.hexdigest(), hashing.size


def _fill(tar: tarfile.TarFile, release: Path) -> None:
    for path in [release, *sorted(release.rglob("*"))]:
        name = f"{release.name}/{path.relative_to(release)}" if path != release else release.name
        info = tarfile.TarInfo(name)
        info.mtime = info.uid = info.gid = 0
        if path.is_symlink():
            info.type, info.mode, info.linkname = tarfile.SYMTYPE, 0o777, os.readlink(path)  # noqa: PTH115 - the text as it stands
            tar.addfile(info)
        elif path.is_dir():
            info.type, info.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(info)
        else:
            with os.fdopen(open_plain(path), "rb") as file:
                status = os.fstat(file.fileno())
                info.size, info.mode = status.st_size, 0o755 if status.st_mode & 0o111 else 0o644
                tar.addfile(info, file)


def unpack_release(archive: Path, sha256: str, size: int, wanted: dict[str, Any], target: Path) -> dict[str, str]:
    """Unpack a packed release into the empty directory ``target``; name -> sha256 of its files.

    ``wanted`` has what provenance.json must say: ``release``, ``label`` and ``inputs``. Raises :class:`RefusedError`
    when anything differs; what was unpacked is the caller's to remove.
    """
    with os.fdopen(open_plain(archive), "rb") as file:
        _same_content(file, sha256, size)
        file.seek(0)
        try:
            unpack(file, target, limits=LIMITS, plain=True)
        except RefusedError as error:
            raise RefusedError(f"the packed release is not unpacked: {error}") from error
    expected, found = {*FOLDERS, PROVENANCE}, {path.name for path in target.iterdir()}
    if found - expected:
        raise RefusedError(f"the packed release holds what no release has: {', '.join(sorted(found - expected))[:200]}")
    if expected - found:
        raise RefusedError(f"the packed release lacks {', '.join(sorted(expected - found))}")
    if problems := problems_of(target):
        raise RefusedError(f"the packed release is not whole: {'; '.join(problems)[:1000]}")
    provenance = json.loads((target / PROVENANCE).read_bytes())
    for key, value in wanted.items():
        if provenance.get(key) != value:
            raise RefusedError(f"the packed release has another {key} in its provenance.json than the wanted one")
    for path in target.rglob("*"):
        if not path.is_symlink():
            sync(path)
    files: dict[str, str] = provenance["files"]
    return files


def _same_content(file: IO[bytes], sha256: str, size: int) -> None:
    found = os.fstat(file.fileno()).st_size
    if found != size:
        raise RefusedError(f"the packed release has {found} bytes, expected {size}")
    digest = hashlib.sha256()
    while block := file.read(_CHUNK):
        digest.update(block)
    if digest.hexdigest() != sha256:
        raise RefusedError(f"the packed release has sha256 {digest.hexdigest()}, the controller's is {sha256}")
