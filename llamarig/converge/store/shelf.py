"""The controller's files by content: ``<cache>/llamarig/artifacts/<sha256>``, 0444, verified whenever one is used.

What is on the way lies under ``partial/`` and goes on where it stopped; a file
gets its name only when its size and hash are right and it is on the disk.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from llamarig.errors import RigError, naming

CHUNK = 4 << 20
BY_CONTENT = "sha256"
"""The directory of a mirror that holds files by content."""

Progress = Callable[[str, int, int], None]
"""Called with a label, bytes done and bytes in all (0 when not known)."""


def silent(_label: str, _done: int, _total: int) -> None:
    """No progress."""


def cache_root() -> Path:
    """``$XDG_CACHE_HOME/llamarig``, or ``~/.cache/llamarig``."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".cache") / "llamarig"


def sha256_of(path: Path) -> str:
    """The sha256 of a file's content, in hex."""
    digest = hashlib.sha256()
    buffer = memoryview(bytearray(CHUNK))
    with path.open("rb", buffering=0) as file:
        while count := file.readinto(buffer):
            digest.update(buffer[:count])
    return digest.hexdigest()


def _block(reader: IO[bytes], path: Path) -> bytes:
    with naming(path):
        return reader.read(CHUNK)


def _sound(path: Path, sha256: str, size: int | None) -> bool:
    return (size is None or path.stat().st_size == size) and sha256_of(path) == sha256


@dataclass(frozen=True)
class Shelf:
    """One directory of files by content. ``root`` is made when something is put there.

    ``beside`` are directories of the same form that are only read: the mirror of a site.
    """

    root: Path
    beside: tuple[Path, ...] = ()

    @classmethod
    def default(cls) -> Shelf:
        """The user's own, in the cache directory."""
        return cls(cache_root() / "artifacts")

    def with_mirror(self, mirror: Path | None) -> Shelf:
        """The same shelf, with what `llamarig mirror` collected in ``mirror`` beside it."""
        return self if mirror is None else Shelf(self.root, (*self.beside, mirror / BY_CONTENT))

    def path(self, sha256: str) -> Path:
        """Where the content lies, or would lie."""
        return self.root / sha256

    def get(self, sha256: str, size: int | None = None) -> Path | None:
        """The file, verified; None when it is not there. A damaged one is thrown away.

        Raises :class:`RigError` for a damaged one in a directory that is only read: what is not told would be
        fetched from elsewhere in silence, or fail for want of a network.
        """
        for place in self.beside:
            beside = place / sha256
            if beside.is_file():
                if not _sound(beside, sha256, size):
                    raise RigError(
                        what="a file of the mirror is damaged",
                        where=str(beside),
                        fix="run `llamarig mirror DIR --verify` where the mirror was collected, and copy it again",
                    )
                return beside
        path = self.path(sha256)
        try:
            sound = _sound(path, sha256, size)
        except FileNotFoundError:
            return None
        if not sound:
            path.unlink(missing_ok=True)
            return None
        return path

    def partial(self, name: str) -> Path:
        """A place for a file on the way; the same name finds it again in a later run."""
        folder = self.root / "partial"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return folder / hashlib.sha256(name.encode()).hexdigest()

    @contextmanager
    def busy(self, name: str) -> Iterator[None]:
        """Hold the name while working on its partial file: two runs share one download, one after the other."""
        with self.partial(f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def put(self, temporary: Path, sha256: str, what: str, size: int | None = None) -> Path:
        """Check a finished temporary file, and give it its name.

        Raises :class:`RigError` when size or hash differ; the file is thrown away then.
        """
        got_size = temporary.stat().st_size
        got = sha256_of(temporary) if size is None or got_size == size else ""
        if got != sha256:
            temporary.unlink(missing_ok=True)
            why = f"sha256 {got}, expected {sha256}" if got else f"{got_size} bytes, expected {size}"
            raise RigError(
                what="the content is not the one that the spec pins",
                where=what,
                why=why,
                fix="find out who changed it; if the new content is wanted, run `llamarig lock` and review the change",
            )
        with naming(temporary), temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.chmod(0o444)
        final = self.path(sha256)
        temporary.replace(final)
        folder = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with naming(self.root):
                os.fsync(folder)
        finally:
            os.close(folder)
        return final

    def copy(self, source: Path, sha256: str, what: str, size: int | None = None) -> Path:
        """Take in a file that lies elsewhere on the controller."""
        with self.busy(sha256):
            temporary = self.partial(sha256)
            try:
                with source.open("rb") as reader, naming(temporary), temporary.open("wb") as writer:
                    while block := _block(reader, source):
                        writer.write(block)
            except OSError as error:
                temporary.unlink(missing_ok=True)
                if error.filename == str(temporary):
                    raise
                raise RigError(what="the file cannot be read", where=what, why=str(error)) from error
            return self.put(temporary, sha256, what, size)
