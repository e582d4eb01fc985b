"""Reading only the beginning of a remote file, and the whole of one without keeping it."""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING

import httpx

from llamarig.converge.store.download import shown
from llamarig.errors import ExitCode, RigError

if TYPE_CHECKING:
    from llamarig.converge.store.shelf import Progress

FIRST = 1 << 20
"""Bytes of the first range; each further one is twice as long, up to :data:`LONGEST`."""
LONGEST = 8 << 20
LIMIT = 256 << 20
"""Bytes of a header that are read at most."""
_EXTENT = re.compile(r"bytes (\d+)-(\d+)/(\d+)")


def refused(url: str, status: int, retry: str = "") -> RigError:
    """An HTTP status as an error that says what to do."""
    fixes = {
        HTTPStatus.UNAUTHORIZED: "log in (`hf auth login`, or HF_TOKEN), and accept the model's terms on its page",
        HTTPStatus.FORBIDDEN: "accept the model's terms on its page, with the account whose token is used",
        HTTPStatus.NOT_FOUND: "check the name of the repository, file or address in the spec",
        HTTPStatus.TOO_MANY_REQUESTS: f"the server asks to wait{f' {retry} s' if retry else ''}; run it again later",
    }
    fix = next((fix for code, fix in fixes.items() if code == status), "try again later")
    return RigError("the server refused", shown(url), f"HTTP status {status}", fix, ExitCode.HOST_FAILED)


def unreachable(url: str, error: Exception) -> RigError:
    """A failed connection as an error."""
    why = str(error) or type(error).__name__
    return RigError("the server cannot be reached", shown(url), why, "check the network", ExitCode.HOST_FAILED)


class RemoteFile(io.RawIOBase):
    """A forward-only binary stream over a URL that fetches ranges as they are read.

    ``size`` is the whole file's size, which every answer must confirm; ``served`` counts the bytes that came.
    """

    def __init__(self, http: httpx.Client, url: str, size: int, headers: Mapping[str, str] | None = None) -> None:
        self.name = shown(url)
        self.size = size
        self.served = 0
        self._http = http
        self._url = url
        self._headers = dict(headers or {})
        self._etag = ""
        self._at = 0
        self._next = FIRST
        self._buffer = b""

    def readable(self) -> bool:
        """It can be read."""
        return True

    def read(self, size: int = -1, /) -> bytes:
        """At most ``size`` bytes, at least one before the end of the file."""
        if not self._buffer and self._at < self.size:
            self._buffer = self._fetch()
        taken = self._buffer if size < 0 else self._buffer[:size]
        self._buffer = self._buffer[len(taken) :]
        return taken

    def _fetch(self) -> bytes:
        if self._at >= LIMIT:
            raise RigError("the header is longer than any known one", self.name, f"no end after {LIMIT:,} bytes")
        end = min(self._at + self._next, self.size) - 1
        headers = {**self._headers, "Range": f"bytes={self._at}-{end}", "Accept-Encoding": "identity"}
        try:
            with self._http.stream("GET", self._url, headers=headers) as answer:
                self._check(answer)
                block = self._wanted(answer, end - self._at + 1)
        except httpx.HTTPError as error:
            raise unreachable(self._url, error) from error
        self._at += len(block)
        self.served += len(block)
        self._next = min(self._next * 2, LONGEST)
        return block

    def _check(self, answer: httpx.Response) -> None:
        """The answer is the asked-for part of the file that the earlier parts came from."""
        if answer.is_error:
            raise refused(self._url, answer.status_code, answer.headers.get("retry-after", ""))
        extent = _EXTENT.fullmatch(answer.headers.get("content-range", ""))
        if answer.status_code != HTTPStatus.PARTIAL_CONTENT or extent is None or int(extent[1]) != self._at:
            why, fix = "it does not answer Range requests", "write `header: none`, or give a local file"
            raise RigError("the server gives no parts of files", self.name, why, fix, ExitCode.HOST_FAILED)
        etag = answer.headers.get("etag", "")
        if int(extent[3]) != self.size or (self._at and etag != self._etag):
            why, fix = f"{extent[3]} bytes, {self.size} expected", "run `llamarig lock` again"
            raise RigError("the file changed while it was read", self.name, why, fix, ExitCode.HOST_FAILED)
        self._etag = etag

    def _wanted(self, answer: httpx.Response, count: int) -> bytes:
        parts: list[bytes] = []
        have = 0
        for block in answer.iter_raw():
            parts.append(block[: count - have])
            have += len(parts[-1])
            if have >= count:
                break
        if have < count:
            raise RigError("the connection ended early", self.name, fix="try again", code=ExitCode.HOST_FAILED)
        return b"".join(parts)


def hash_all(
    http: httpx.Client, url: str, progress: Progress, headers: Mapping[str, str] | None = None
) -> tuple[str, int]:
    """sha256 and size of a whole remote file; nothing of it is kept."""
    digest, size = hashlib.sha256(), 0
    try:
        with http.stream("GET", url, headers={**(headers or {}), "Accept-Encoding": "identity"}) as answer:
            if answer.is_error:
                raise refused(url, answer.status_code, answer.headers.get("retry-after", ""))
            length = answer.headers.get("content-length", "")
            total = int(length) if length.isdecimal() else 0
            for block in answer.iter_raw():
                digest.update(block)
                size += len(block)
                progress(f"hash {shown(url).rpartition('/')[2]}", size, total)
    except httpx.HTTPError as error:
        raise unreachable(url, error) from error
    if total and size != total:
        raise RigError("the connection ended early", shown(url), fix="try again", code=ExitCode.HOST_FAILED)
    return digest.hexdigest(), size


def read_all(http: httpx.Client, url: str, limit: int) -> bytes:
    """A small remote file as a whole; :class:`RigError` when it is longer than ``limit`` bytes."""
    data = bytearray()
    try:
        with http.stream("GET", url, headers={"Accept-Encoding": "identity"}) as answer:
            if answer.is_error:
                raise refused(url, answer.status_code, answer.headers.get("retry-after", ""))
            for block in answer.iter_raw():
                data += block
                if len(data) > limit:
                    why = f"more than {limit:,} bytes"
                    raise RigError("the file is too long for what it should be", shown(url), why)
    except httpx.HTTPError as error:
        raise unreachable(url, error) from error
    return bytes(data)
