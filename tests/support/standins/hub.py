"""A stand-in for the model hub and the storage network behind it.

It answers as the hub does (checked against the hub's own Python client, which parses it, and against public reports of
its headers): commits by revision, paths-info with ``lfs``, a resolve address that redirects with X-Linked-Size,
X-Linked-Etag and X-Repo-Commit, and storage on another origin that knows ranges, whose ETag also has 64 hex digits but
is not the file's sha256.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qs, unquote

from tests.support.standins.server import Quiet, serving


@dataclass
class Repository:
    """Files by commit, and where the branches are."""

    commits: dict[str, dict[str, bytes]]
    main: str
    private: bool = False
    small: set[str] = field(default_factory=set)
    """Files that the hub keeps in git itself: no lfs entry, no redirect."""


@dataclass
class FakeHub:
    """What the stand-in holds, and what it was asked."""

    repositories: dict[str, Repository] = field(default_factory=dict)
    address: str = ""
    storage: str = ""
    limited: bool = False
    """Answer everything with 429."""
    lie: dict[str, str] = field(default_factory=dict)
    """Headers of the resolve address that are replaced."""
    ranges: bool = True
    storage_reads: list[tuple[int, int]] = field(default_factory=list)
    storage_saw_token: bool = False
    swap_after: int | None = None
    """Storage serves another file from this many reads on."""


_PAGE = 2
"""Entries on one page of a tree listing; the hub has a thousand."""


def sha256(data: bytes) -> str:
    """In hex."""
    return hashlib.sha256(data).hexdigest()


class _Hub(Quiet):
    hub: FakeHub

    def answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        form = parse_qs(self.rfile.read(length).decode())
        if self.hub.limited:
            return self.reply(429, b'{"error":"rate limited"}', Retry_After="30")
        path = unquote(self.path.partition("?")[0])
        if found := re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/revision/([^/]+))?", path):
            return self._info(found[1], found[2] or "main")
        if found := re.fullmatch(r"/api/models/([^/]+/[^/]+)/paths-info/([^/]+)", path):
            return self._paths(found[1], found[2], form.get("paths", []))
        if found := re.fullmatch(r"/api/models/([^/]+/[^/]+)/tree/([^/]+)", path):
            return self._tree(found[1], found[2])
        if found := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            return self._resolve(found[1], found[2], found[3])
        return self.reply(404)

    def _repository(self, name: str) -> Repository | None:
        repository = self.hub.repositories.get(name)
        if repository is None or (repository.private and "Authorization" not in self.headers):
            self.reply(401, b'{"error":"Invalid username or password."}', X_Error_Code="RepoNotFound")
            return None
        return repository

    def _commit(self, repository: Repository, revision: str) -> str | None:
        commit = repository.main if revision == "main" else revision
        if commit not in repository.commits:
            self.reply(404, b'{"error":"Invalid rev id"}', X_Error_Code="RevisionNotFound")
            return None
        return commit

    def _info(self, name: str, revision: str) -> None:
        if (repository := self._repository(name)) and (commit := self._commit(repository, revision)):
            files = [{"rfilename": path} for path in repository.commits[commit]]
            data = {"_id": "0", "id": name, "modelId": name, "sha": commit, "siblings": files, "tags": []}
            self.reply(200, json.dumps(data).encode(), Content_Type="application/json")

    def _paths(self, name: str, revision: str, paths: list[str]) -> None:
        if (repository := self._repository(name)) and (commit := self._commit(repository, revision)):
            files = repository.commits[commit]
            entries = [self._entry(repository, path, files[path]) for path in paths if path in files]
            self.reply(200, json.dumps(entries).encode(), Content_Type="application/json")

    def _tree(self, name: str, revision: str) -> None:
        """Two entries a page; the next page is named in a Link header."""
        if (repository := self._repository(name)) and (commit := self._commit(repository, revision)):
            at = int(parse_qs(self.path.partition("?")[2]).get("cursor", ["0"])[0])
            files = list(repository.commits[commit].items())
            entries = [self._entry(repository, path, data) for path, data in files[at : at + _PAGE]]
            more = f"{self.hub.address}/api/models/{name}/tree/{revision}?recursive=True&cursor={at + _PAGE}"
            link = {"Link": f'<{more}>; rel="next"'} if at + _PAGE < len(files) else {}
            self.reply(200, json.dumps(entries).encode(), Content_Type="application/json", **link)

    def _entry(self, repository: Repository, path: str, data: bytes) -> dict[str, object]:
        entry: dict[str, object] = {"type": "file", "path": path, "size": len(data), "oid": "0" * 40}
        if path not in repository.small:
            digest = self.hub.lie.get("sha256") or sha256(data)
            entry["lfs"] = {"oid": digest, "size": len(data), "pointerSize": 135}
        return entry

    def _resolve(self, name: str, revision: str, path: str) -> None:
        if (repository := self._repository(name)) and (commit := self._commit(repository, revision)):
            data = repository.commits[commit].get(path)
            if data is None:
                return self.reply(404, X_Error_Code="EntryNotFound")
            if path in repository.small:
                return self.reply(200, data, ETag=f'"{"1" * 40}"', X_Repo_Commit=commit)
            headers = {
                "X_Repo_Commit": commit,
                "X_Linked_Size": str(len(data)),
                "X_Linked_Etag": f'"{sha256(data)}"',
                "Location": f"{self.hub.storage}/{name}/{commit}/{path}?Expires=1",
            } | self.hub.lie
            return self.reply(302, b"Found. Redirecting", **headers)
        return None


class _Storage(Quiet):
    hub: FakeHub

    def answer(self) -> None:
        owner, name, commit, path = unquote(self.path.partition("?")[0]).lstrip("/").split("/", 3)
        data = self.hub.repositories[f"{owner}/{name}"].commits[commit][path]
        self.hub.storage_saw_token |= "Authorization" in self.headers
        if self.hub.swap_after is not None and len(self.hub.storage_reads) >= self.hub.swap_after:
            data = data[::-1]
        etag = f'"{sha256(b"storage" + data)}"'
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if wanted is None or not self.hub.ranges:
            self.hub.storage_reads.append((0, len(data)))
            return self.reply(200, data, ETag=etag)
        start, end = int(wanted[1]), min(int(wanted[2]), len(data) - 1)
        self.hub.storage_reads.append((start, end + 1))
        extent = f"bytes {start}-{end}/{len(data)}"
        return self.reply(206, data[start : end + 1], ETag=etag, Content_Range=extent)


@contextmanager
def fake_hub() -> Iterator[FakeHub]:
    """A running stand-in; ``address`` goes into HF_ENDPOINT."""
    hub = FakeHub()
    with (
        serving(type("Hub", (_Hub,), {"hub": hub})) as hub.address,
        serving(type("Storage", (_Storage,), {"hub": hub})) as hub.storage,
    ):
        yield hub
