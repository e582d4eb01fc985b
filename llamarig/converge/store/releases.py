"""Finished releases on the controller: a packed release by its id, so that a second host copies instead of building.

The content lies on the shelf by sha256, like every other file; beside it, ``releases/<id>.json`` says which content
is the release of that id, from which host it came and when. What decides is the hash computed here while the file
was received: a host that gets the release is told that hash, never asked for one.
"""

from __future__ import annotations

import json
import os
import re
import tarfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from llamarig.converge.store.shelf import Shelf
from llamarig.converge.store.tar_headers import bounded, members
from llamarig.errors import ExitCode, RigError, naming

PROVENANCE = "provenance.json"
_PROVENANCE_LIMIT = 4 << 20
_NAME = frozenset("0123456789abcdefghijklmnopqrstuvwxyz-")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Held:
    """A release that the controller holds, packed."""

    release: str
    """Its id."""
    sha256: str
    """Of the packed file, computed on the controller."""
    size: int
    """Bytes of the packed file."""
    origin: str
    """The host that it was fetched from."""
    at: str
    """When, ISO 8601 in UTC."""


@dataclass(frozen=True)
class Releases:
    """The packed releases of one shelf."""

    shelf: Shelf

    @classmethod
    def default(cls) -> Releases:
        """Those in the user's own cache directory."""
        return cls(Shelf.default())

    @property
    def index(self) -> Path:
        """Directory of the notes, one a release id."""
        return self.shelf.root.parent / "releases"

    def get(self, release: str) -> Held | None:
        """What is held of a release id; None when nothing is, or its file is gone or of another size.

        Costs a look at two files: the content is hashed when it is sent (:meth:`file`).
        """
        try:
            note = json.loads(self.note(release).read_text(encoding="utf-8"))
            held = Held(
                str(note["release"]), str(note["sha256"]), int(note["size"]), str(note["origin"]), str(note["at"])
            )
            # The note of a mirror comes from elsewhere: it names a content, and no file of this machine.
            named = held.release == release and _SHA256.fullmatch(held.sha256) is not None
            sound = named and self.shelf.path(held.sha256).stat().st_size == held.size
        except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
            return None
        return held if sound else None

    def file(self, wanted: Mapping[str, Any]) -> Path:
        """The packed file of a release that is to be copied (``wanted`` with ``artifact``), hashed once more.

        Raises :class:`RigError` when it is gone or damaged; it is forgotten then, and the next run builds.
        """
        release, artifact = str(wanted["id"]), wanted["artifact"]
        path = self.shelf.get(str(artifact["sha256"]), int(artifact["size"]))
        if path is None:
            self.forget(release)
            raise RigError(
                what="the packed release that the controller held is gone or damaged",
                where=release,
                fix="run the same command again: the release is built, or fetched from a host that has it",
                code=ExitCode.HOST_FAILED,
            )
        return path

    def add(self, packed: Path, sha256: str, wanted: Mapping[str, Any], origin: str, at: str) -> Held:
        """Take in a packed release: ``packed`` is moved onto the shelf, and is gone from where it lay.

        ``sha256`` was computed while the file was received; it is checked against what lies on the disk. ``wanted``
        has ``id`` and ``inputs`` as the JSON form of :class:`~llamarig.render.wanted.WantedRelease`. Raises
        :class:`RigError` when the file is no release, or the release of other inputs; it is thrown away then, and the
        index is as it was.
        """
        release = str(wanted["id"])
        try:
            _same(_provenance(packed), release, wanted["inputs"])
        except RigError:
            packed.unlink(missing_ok=True)
            raise
        size = packed.stat().st_size
        self.shelf.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.shelf.put(packed, sha256, f"release {release}", size)
        held = Held(release, sha256, size, origin, at)
        self._write(held)
        return held

    def forget(self, release: str) -> None:
        """Drop a release id; its content stays on the shelf like any other that nothing names."""
        self.note(release).unlink(missing_ok=True)

    def note(self, release: str) -> Path:
        """Where it stands which content is a release. Raises :class:`RigError` for what is no release id."""
        if not release or not set(release) <= _NAME:
            raise RigError("this is no release id", release[:80])
        return self.index / f"{release}.json"

    def _write(self, held: Held) -> None:
        self.index.mkdir(parents=True, exist_ok=True, mode=0o700)
        note = self.note(held.release)
        temporary = note.with_name(f".{note.name}.{os.getpid()}")
        try:
            with naming(note), temporary.open("w", encoding="utf-8") as file:
                json.dump(asdict(held), file, indent=1)
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
        temporary.replace(note)


def _provenance(packed: Path) -> Mapping[str, Any]:
    """The provenance inside a packed release; nothing is unpacked."""
    try:
        with tarfile.open(packed, "r:", tarinfo=bounded()) as tar:
            for member in members(tar):
                if member.isreg() and member.name.partition("/")[2] == PROVENANCE:
                    stream = tar.extractfile(member)
                    if stream is None or member.size > _PROVENANCE_LIMIT:
                        break
                    found = json.loads(stream.read())
                    if isinstance(found, dict):
                        return found
                    break
    except (tarfile.TarError, OSError, EOFError, ValueError, OverflowError, RecursionError) as error:
        raise _refused("it is not a whole tar of a release", str(error)) from error
    raise _refused("it holds no readable provenance.json", "")


def _same(provenance: Mapping[str, Any], release: str, inputs: object) -> None:
    if provenance.get("release") != release:
        raise _refused("it is another release", f"{str(provenance.get('release'))[:80]!r} instead of {release}")
    if provenance.get("inputs") != json.loads(json.dumps(inputs)):
        raise _refused("it was built from other inputs", f"its provenance.json differs from what {release} is made of")


def _refused(what: str, why: str) -> RigError:
    return RigError(
        what=f"the packed release is not taken in: {what}",
        why=why,
        fix="find out what the host did; nothing was kept, and another host can build it",
        code=ExitCode.HOST_FAILED,
    )
