"""The directory of a mirror: what is there and right is kept, what is damaged is told and thrown away."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from llamarig.converge.mirror.manifest import SUMS, Entry, Manifest, write_whole
from llamarig.converge.store.shelf import BY_CONTENT, Shelf, sha256_of
from llamarig.errors import RigError
from llamarig.render.site import MANIFEST

LOCK = ".llamarig-lock"
SCRATCH = ".llamarig-partial"
"""What is on its way to a place that has a name of its own."""


@dataclass
class Place:
    """A mirror while it is collected. ``added`` and ``damaged`` are paths below ``root``, in order."""

    root: Path
    manifest: Manifest
    added: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)
    pruned: list[str] = field(default_factory=list)
    _used: set[str] = field(default_factory=set)

    @classmethod
    @contextmanager
    def opened(cls, root: Path) -> Iterator[Place]:
        """The mirror in ``root``, made when there is none; nobody else collects into it meanwhile."""
        Manifest.load(root)  # nothing is left in a directory that is refused
        try:
            root.mkdir(parents=True, exist_ok=True)
            # Never through a link: the directory may come from elsewhere.
            lock = os.fdopen(os.open(root / LOCK, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644), "w")
        except OSError as error:
            raise RigError("the mirror's directory cannot be written", str(root), error.strerror or "") from error
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise RigError(
                    "another llamarig collects into this mirror", str(root), fix="wait until it is done"
                ) from error
            place = cls(root, Manifest.load(root))
            # From here on it is a mirror: a run that is killed is gone on with.
            place.save()
            yield place

    @property
    def shelf(self) -> Shelf:
        """Where files by content are put, in the form of the controller's own store."""
        return Shelf(self.root / BY_CONTENT)

    @property
    def used(self) -> frozenset[str]:
        """Paths that this run has asked for."""
        return frozenset(self._used)

    def by_content(self) -> frozenset[str]:
        """The sha256 of every file that lies on :attr:`shelf`; none is read."""
        return frozenset(path.name for path in self.shelf.root.glob("*") if path.is_file())

    def holds(self, path: str, sha256: str | None = None) -> bool:
        """Whether a file of the manifest lies there with its size; its content is not read (:meth:`verify` does)."""
        entry = self.manifest.files.get(path)
        if entry is None or (sha256 is not None and entry.sha256 != sha256):
            return False
        try:
            return (self.root / path).stat(follow_symlinks=False).st_size == entry.size
        except OSError:
            return False

    def found(self, path: str, sha256: str) -> bool:
        """The same; where the manifest does not know the file, its content is read: a run may have been killed."""
        if self.holds(path, sha256):
            return True
        final = self.root / path
        return path not in self.manifest.files and final.is_file() and sha256_of(final) == sha256

    def content(self, sha256: str, kind: str, name: str, host: str, make: Callable[[Shelf], Path]) -> Path:
        """Have one file by content, by ``make`` when it is not there: it fetches to the shelf that it is given.

        What the controller's own store holds is copied from there.
        """
        path = f"{BY_CONTENT}/{sha256}"
        final = self.root / path
        if not self.holds(path, sha256):
            lies = final.exists()
            found = self.shelf.get(sha256)
            if lies and found is None:
                self.damaged.append(path)
            if found is None:
                held = Shelf.default().get(sha256)
                found = self.shelf.copy(held, sha256, name) if held is not None else make(self.shelf)
                self.added.append(path)
            if found != final:
                self.shelf.copy(found, sha256, name)
        self.keep(path, Entry(sha256, final.stat().st_size, kind, name, frozenset({host} if host else ())))
        return final

    def file(self, path: str, kind: str, name: str, content: bytes, host: str = "") -> None:
        """Have a small file with a name of its own."""
        sha256 = hashlib.sha256(content).hexdigest()
        if not self.holds(path, sha256) or (self.root / path).read_bytes() != content:
            write_whole(self.root / path, content)
            (self.root / path).chmod(0o644)
            self.added.append(path)
        self.keep(path, Entry(sha256, len(content), kind, name, frozenset({host} if host else ())))

    def adopt(self, temporary: Path, path: str, sha256: str, kind: str, name: str) -> None:
        """Give a finished temporary file its name, once its content is the one that was asked for."""
        got = sha256_of(temporary)
        if got != sha256:
            temporary.unlink()
            raise RigError("what was fetched is not what its index names", name, f"sha256 {got}, expected {sha256}")
        final = self.root / path
        final.parent.mkdir(parents=True, exist_ok=True)
        temporary.chmod(0o644)
        temporary.replace(final)
        self.added.append(path)
        self.keep(path, Entry(sha256, final.stat().st_size, kind, name))

    def keep(self, path: str, entry: Entry) -> None:
        """Note that a file is needed; what other hosts need it stays."""
        known = self.manifest.files.get(path)
        if known is not None and known.sha256 == entry.sha256:
            entry = replace(entry, hosts=entry.hosts | known.hosts)
        self.manifest.files[path] = entry
        self._used.add(path)

    def keep_below(self, folder: str) -> None:
        """Note that all below a directory is still needed, though this run did not look at it."""
        self._used |= {path for path in self.manifest.files if path.startswith(folder)}

    def scratch(self, name: str) -> Path:
        """A place for a file on the way that the next run finds again."""
        folder = self.root / SCRATCH
        folder.mkdir(exist_ok=True)
        return folder / name

    def forget_host(self, host: str) -> None:
        """Before a host is collected for: it needs what this run asks for, no more."""
        for path, entry in self.manifest.files.items():
            if host in entry.hosts:
                self.manifest.files[path] = replace(entry, hosts=entry.hosts - {host})

    def verify(self) -> None:
        """Hash every file anew; what is gone or damaged is thrown away, told, and fetched again when it is needed."""
        for path, entry in list(self.manifest.files.items()):
            final = self.root / path
            try:
                sound = final.is_file() and not final.is_symlink() and sha256_of(final) == entry.sha256
            except OSError:
                sound = False
            if not sound:
                # What lies behind a linked directory is somebody's; a directory of that name is no file of ours.
                if final.parent.resolve() == (self.root.resolve() / path).parent:
                    with suppress(OSError):
                        final.unlink()
                self.damaged.append(path)
                del self.manifest.files[path]

    def prune(self) -> None:
        """Remove what this run has not asked for, and what no manifest knows."""
        for path in [path for path in self.manifest.files if path not in self._used]:
            del self.manifest.files[path]
        own = {MANIFEST, SUMS, LOCK}
        for found in sorted(self.root.rglob("*")):
            path = str(found.relative_to(self.root))
            if (found.is_file() or found.is_symlink()) and path not in own and path not in self.manifest.files:
                found.unlink()
                if not path.startswith((f"{SCRATCH}/", f"{BY_CONTENT}/partial/")):
                    self.pruned.append(path)
        shutil.rmtree(self.root / SCRATCH, ignore_errors=True)

    def save(self) -> str:
        """Write the manifest, after what it names is there; returns the sha256 that vouches for everything."""
        return self.manifest.save(self.root)
