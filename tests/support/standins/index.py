"""A stand-in for a Python package index: a simple page a project with hashes, and the files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.support.standins.server import Quiet, serving


@dataclass
class FakeIndex:
    """Files by name; the project of a file is what stands before its version."""

    files: dict[str, bytes] = field(default_factory=dict)
    lie: bool = False
    """Promise other hashes than those of the files."""
    address: str = ""


def _handler(index: FakeIndex) -> type[Quiet]:
    class Handler(Quiet):
        def answer(self) -> None:
            path = self.path.strip("/")
            if path.startswith("files/") and (data := index.files.get(path.removeprefix("files/"))) is not None:
                return self.reply(200, data)
            project = path.removeprefix("simple/")
            names = [name for name in index.files if name.split("-")[0].replace("_", "-") == project]
            if not names:
                return self.reply(404)
            links = "".join(f'<a href="/files/{name}#sha256={self._digest(name)}">{name}</a>' for name in names)
            return self.reply(200, f"<html>{links}</html>".encode(), Content_Type="text/html")

        def _digest(self, name: str) -> str:
            return "0" * 64 if index.lie else hashlib.sha256(index.files[name]).hexdigest()

    return Handler


@contextmanager
def fake_index() -> Iterator[FakeIndex]:
    """A running index; ``address`` goes into PIP_INDEX_URL."""
    index = FakeIndex()
    with serving(_handler(index)) as base:
        index.address = f"{base}/simple"
        yield index
