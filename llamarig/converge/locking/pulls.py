"""Heads of pull requests and their patches, by git alone: what comes is checked against the commit that names it."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from llamarig.catalog.upstream import upstream
from llamarig.converge.store.download import shown
from llamarig.errors import ExitCode, RigError

_SECONDS = 900
_COMMIT = re.compile(r"[0-9a-f]{40}")
_HARDENING = (
    "-c", "transfer.fsckObjects=true",
    "-c", "core.hooksPath=/dev/null",
    "-c", "protocol.ext.allow=never",
    "-c", "http.followRedirects=initial",
    "-c", "core.quotePath=false",
)  # fmt: skip
_DIFF = (
    "diff", "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--full-index", "--binary", "--unified=3",
    "--diff-algorithm=myers", "--no-indent-heuristic", "--src-prefix=a/", "--dst-prefix=b/", "--ignore-submodules=none",
)  # fmt: skip
"""Everything that a user's configuration could change is said, so that the same commits give the same bytes."""


@dataclass(frozen=True)
class Pull:
    """A pull request's change at one head: the difference to where it left the default branch."""

    head: str
    base: str
    patch: bytes


def _git(*words: str, cwd: Path | None = None) -> bytes:
    kept = {"PATH", "HOME", "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO", "https_proxy", "http_proxy", "no_proxy"}
    environment = {key: value for key, value in os.environ.items() if key in kept}
    environment |= {
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "LC_ALL": "C",
    }
    try:
        done = subprocess.run(  # noqa: S603 - no shell; addresses stand behind `--`
            ["git", *_HARDENING, *words],  # noqa: S607 - the user's git
            capture_output=True, check=False, env=environment, cwd=cwd, timeout=_SECONDS, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except FileNotFoundError as error:
        raise RigError("git is not installed on this machine", fix="install git") from error
    except subprocess.TimeoutExpired as error:
        raise RigError("git gave no answer", why=f"within {_SECONDS} s", code=ExitCode.HOST_FAILED) from error
    if done.returncode != 0:
        raise RigError(
            "git failed", why=done.stderr.decode(errors="replace").strip()[-2000:], code=ExitCode.HOST_FAILED
        )
    return done.stdout


class Pulls:
    """Pull requests of the engine's repository; ``url`` is the catalog's unless given."""

    def __init__(self, url: str | None = None) -> None:
        self.url = url or upstream().engine_git

    def _ref(self, number: int) -> str:
        return upstream().engine_pull_ref.format(number=number)

    def head(self, number: int) -> str:
        """The commit that the pull request is at now. Raises :class:`RigError` when there is no such pull request."""
        ref = self._ref(number)
        lines = _git("ls-remote", "--", self.url, ref).decode("ascii", "replace").split("\n")
        heads = [line.partition("\t")[0] for line in lines if line.endswith(f"\t{ref}")]
        if len(heads) != 1 or not _COMMIT.fullmatch(heads[0]):
            raise RigError(f"there is no pull request {number}", shown(self.url), f"{ref} is not there", "check `pr`")
        return heads[0]

    def patch(self, number: int, head: str) -> Pull:
        """The change of a pull request at ``head`` (9 to 40 digits), which must lie on the pull request's branch."""
        with _repository(self.url) as repository:
            _git("fetch", "--quiet", "--no-tags", "origin", f"+{self._ref(number)}:refs/pull", "+HEAD:refs/default",
                 cwd=repository)  # fmt: skip
            full = self._resolve(number, head, repository)
            base = _git("merge-base", "refs/default", full, cwd=repository).decode().strip()
            if base == full:
                raise RigError(
                    f"pull request {number} is part of the default branch already",
                    shown(self.url),
                    fix="leave the patch out and build a commit that holds it",
                )
            return Pull(full, base, _git(*_DIFF, base, full, "--", cwd=repository))

    def _resolve(self, number: int, head: str, repository: Path) -> str:
        try:
            full = _git("rev-parse", "--verify", "--quiet", f"{head}^{{commit}}", cwd=repository).decode().strip()
            _git("merge-base", "--is-ancestor", full, "refs/pull", cwd=repository)
        except RigError as error:
            raise RigError(
                f"pull request {number} no longer holds the commit {head[:12]}",
                shown(self.url),
                "its branch was rewritten since it was locked",
                "write `head: unlocked` and `sha256: unlocked` to take its present head",
                ExitCode.HOST_FAILED,
            ) from error
        return full


@contextmanager
def _repository(url: str) -> Iterator[Path]:
    """An empty bare repository whose ``origin`` is ``url``, gone afterwards.

    What the filter leaves out of a fetch comes when it is needed; a server that knows no filters sends everything.
    """
    with tempfile.TemporaryDirectory(prefix="llamarig-git-") as folder:
        path = Path(folder)
        _git("init", "--quiet", "--bare", folder)
        origin = {"url": url, "promisor": "true", "partialclonefilter": "blob:none"}
        for key, value in origin.items():
            _git("config", f"remote.origin.{key}", value, cwd=path)
        yield path
