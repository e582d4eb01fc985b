"""The model hub: which commit a repository is at, and what a file of it weighs and hashes to."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from itertools import islice
from typing import TypeVar
from urllib.parse import quote

import httpx
from huggingface_hub import HfApi, get_token
from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError, RevisionNotFoundError
from huggingface_hub.hf_api import RepoFile

from llamarig.catalog.upstream import upstream
from llamarig.converge.locking.remote import refused, unreachable
from llamarig.errors import ExitCode, RigError

_COMMIT = re.compile(r"[0-9a-f]{40}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
Answer = TypeVar("Answer")

_CONNECTION: type[Exception] = HfHubHTTPError.__bases__[0]
"""What the hub's client raises when there is no answer; which library it comes from depends on its version."""


@dataclass(frozen=True)
class HubFile:
    """A file at a commit. ``sha256`` is None for one that the hub keeps in git itself."""

    url: str
    size: int
    sha256: str | None


@dataclass(frozen=True)
class TreeFile:
    """A file in a repository's tree listing. ``sha256`` is None for one that the hub keeps in git itself."""

    path: str
    size: int
    sha256: str | None


MAX_TREE = 20_000
"""Entries of a listing that are looked at."""


class Hub:
    """The hub that the catalog or HF_ENDPOINT names; a token is taken where the hub's own tools keep it."""

    def __init__(self, http: httpx.Client, endpoint: str | None = None) -> None:
        self.endpoint = (endpoint or os.environ.get("HF_ENDPOINT") or upstream().model_hub).rstrip("/")
        self._http = http

    def commit(self, repo: str, revision: str | None = None) -> str:
        """The 40 digits of a revision; of the default branch when none is given."""
        info = self._ask(repo, lambda api: api.model_info(repo, revision=revision, timeout=60))
        sha = str(info.sha)
        if not _COMMIT.fullmatch(sha):
            raise self._nonsense(repo, f"its commit is {sha[:80]!r}")
        return sha

    def file(self, repo: str, revision: str, path: str) -> HubFile:
        """Size and hash of a file, by the listing and, where the two can differ, by the address itself."""
        found = self._ask(repo, lambda api: api.get_paths_info(repo, [path], revision=revision))
        entry = next((each for each in found if isinstance(each, RepoFile) and each.path == path), None)
        if entry is None:
            raise RigError(
                f"the repository has no file {path} at {revision[:12]}", f"{self.endpoint}/{repo}", fix="check `file`"
            )
        url = f"{self.endpoint}/{repo}/resolve/{revision}/{quote(path)}"
        if entry.lfs is None:
            return HubFile(url, int(entry.size), None)
        sha256, size = str(entry.lfs.sha256), int(entry.lfs.size)
        if not _SHA256.fullmatch(sha256):
            raise self._nonsense(repo, f"the sha256 of {path} is {sha256[:80]!r}")
        self._confirm(url, revision, size, sha256)
        return HubFile(url, size, sha256)

    def tree(self, repo: str, revision: str) -> list[TreeFile]:
        """All files of a repository at a revision, with size and hash as the listing has them."""
        listed = self._ask(
            repo, lambda api: list(islice(api.list_repo_tree(repo, recursive=True, revision=revision), MAX_TREE))
        )
        found = []
        for entry in listed:
            if isinstance(entry, RepoFile):
                size, sha256 = int(entry.size), None
                if entry.lfs is not None:
                    size, sha256 = int(entry.lfs.size), str(entry.lfs.sha256)
                    if not _SHA256.fullmatch(sha256):
                        raise self._nonsense(repo, f"the sha256 of {entry.path[:200]} is {sha256[:80]!r}")
                found.append(TreeFile(str(entry.path), size, sha256))
        return found

    def _confirm(self, url: str, revision: str, size: int, sha256: str) -> None:
        """The download address must promise the same content as the listing.

        Only the hub's own answer is read and no redirect followed: behind it a storage network answers, whose ETag also
        has 64 hex digits and means something else.
        """
        try:
            answer = self._http.head(
                url, follow_redirects=False, headers={**self.headers(), "Accept-Encoding": "identity"}
            )
        except httpx.HTTPError as error:
            raise unreachable(url, error) from error
        if answer.is_error:
            raise refused(url, answer.status_code, answer.headers.get("retry-after", ""))
        said = {
            "commit": (answer.headers.get("x-repo-commit"), revision),
            "size": (answer.headers.get("x-linked-size"), str(size)),
            "sha256": ((answer.headers.get("x-linked-etag") or "").strip('"') or None, sha256),
        }
        wrong = [
            f"{what} {seen[:80]} instead of {want}" for what, (seen, want) in said.items() if seen and seen != want
        ]
        if wrong:
            raise RigError("the hub contradicts itself", url, "; ".join(wrong), "try again later", ExitCode.HOST_FAILED)

    def headers(self) -> dict[str, str]:
        """The user's token for the hub, when there is one."""
        token = get_token()
        return {"Authorization": f"Bearer {token}"} if token else {}

    def _ask(self, repo: str, question: Callable[[HfApi], Answer]) -> Answer:
        try:
            return question(HfApi(endpoint=self.endpoint))
        except HfHubHTTPError as error:
            where = f"{self.endpoint}/{repo}"
            answer = error.response
            status = answer.status_code if answer is not None else 0
            retry = answer.headers.get("retry-after", "") if answer is not None else ""
            if isinstance(error, RevisionNotFoundError):
                raise RigError("the repository has no such revision", where, fix="check `revision`") from error
            if isinstance(error, RepositoryNotFoundError):
                # The hub says 401 for what does not exist as well, so that nobody can probe for private names.
                raise RigError("the hub has no such repository, or not for you", where, f"HTTP status {status}",
                               "check `repo`; for a private one log in (`hf auth login`)") from error  # fmt: skip
            raise refused(where, status or HTTPStatus.BAD_GATEWAY, retry) from error
        except (_CONNECTION, OSError) as error:
            raise unreachable(self.endpoint, error) from error
        except (KeyError, TypeError, ValueError) as error:
            raise self._nonsense(repo, f"{type(error).__name__}: {str(error)[:200]}") from error

    def _nonsense(self, repo: str, why: str) -> RigError:
        return RigError("the hub's answer makes no sense", f"{self.endpoint}/{repo}", why, code=ExitCode.HOST_FAILED)
