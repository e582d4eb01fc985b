"""A stand-in for the engine's forge: a real git repository behind git's own smart HTTP, with refs/pull/N/head.

As the forge does, it allows partial clones and fetching any commit by its id.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.standins.server import Quiet, serving

IDENTITY = {
    "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_AUTHOR_DATE": "2026-08-01T00:00:00Z",
    "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.org", "GIT_COMMITTER_DATE": "2026-08-01T00:00:00Z",
    "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1",
}  # fmt: skip


@dataclass
class Forge:
    """The repository on disk, and the address that serves it."""

    work: Path
    url: str = ""

    def git(self, *words: str) -> str:
        """Run git in the repository."""
        environment = {**os.environ, **IDENTITY}
        done = subprocess.run(
            ["git", *words], cwd=self.work, env=environment, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def commit(self, message: str, **files: str | None) -> str:
        """Write files (``__`` in a name is a slash, ``_dot_`` a dot) and commit them; the commit's id."""
        for name, text in files.items():
            path = self.work / name.replace("__", "/").replace("_dot_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            if text is None:
                path.unlink()
            else:
                path.write_text(text)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)
        return self.git("rev-parse", "HEAD")

    def pull(self, number: int, **files: str | None) -> str:
        """(Re)open a pull request off the default branch with these files; its head."""
        self.git("checkout", "-q", "--detach", "main")
        head = self.commit(f"change of pull request {number}", **files)
        self.git("update-ref", f"refs/pull/{number}/head", head)
        self.git("checkout", "-q", "main")
        return head


def _handler(work: Path) -> type[Quiet]:
    class Handler(Quiet):
        def answer(self) -> None:
            self._backend(self._body())

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding") == "chunked":
                parts = []
                while size := int(self.rfile.readline(), 16):
                    parts.append(self.rfile.read(size))
                    self.rfile.readline()
                self.rfile.readline()
                return b"".join(parts)
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))

        def _backend(self, body: bytes) -> None:
            path, _, query = self.path.partition("?")
            environment = {
                "PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": str(work.parent), "GIT_HTTP_EXPORT_ALL": "1",
                "PATH_INFO": path, "QUERY_STRING": query, "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""), "CONTENT_LENGTH": str(len(body)),
                "REMOTE_ADDR": "127.0.0.1", **IDENTITY,
            }  # fmt: skip
            done = subprocess.run(
                ["git", "http-backend"], input=body, env=environment, capture_output=True, check=False
            )
            head, _, answer = done.stdout.partition(b"\r\n\r\n")
            fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
            status = int(fields.pop("Status", "200").split()[0])
            self.reply(status, answer, **{key.replace("-", "_"): value for key, value in fields.items()})

    return Handler


@contextmanager
def forge(folder: Path) -> Iterator[Forge]:
    """A running forge with one repository, ``engine/.git``, that has a first commit on ``main``."""
    work = folder / "engine"
    work.mkdir()
    found = Forge(work)
    found.git("init", "-q", "-b", "main")
    for key in ("uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"):
        found.git("config", key, "true")
    found.commit("begin", src__a_dot_cpp="one\ntwo\nthree\n", CMakeLists_dot_txt="project(x)\n")
    with serving(_handler(work)) as address:
        found.url = f"{address}/engine/.git"
        yield found
