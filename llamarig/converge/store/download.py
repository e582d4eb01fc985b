"""Download a file so that it may stop anywhere and go on there."""

from __future__ import annotations

import json
import re
import shutil
import ssl
import time
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

import httpx

from llamarig.converge.store.pip_config import PipConfig
from llamarig.converge.store.shelf import Progress
from llamarig.errors import ExitCode, RigError, naming

ATTEMPTS = 5
EVERY_S = 0.5
_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+)")


def shown(url: str) -> str:
    """The URL without user, password and query: fit for a message."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def client(config: PipConfig | None = None) -> httpx.Client:
    """An HTTP client that trusts what pip is configured to trust."""
    verify = ssl.create_default_context(cafile=config.cert) if config and config.cert else ssl.create_default_context()
    return httpx.Client(
        verify=verify,
        follow_redirects=True,
        timeout=httpx.Timeout(60.0, connect=20.0),
        proxy=config.proxy if config else None,
    )


def _lies(url: str, offered: int, size: int) -> RigError:
    return RigError(
        what="the server offers a file of another size",
        where=shown(url),
        why=f"{offered} bytes, the spec pins {size}",
        fix="it was replaced upstream, or this is an error page; pin the content that you want with `llamarig lock`",
    )


def _unreachable(url: str, why: str) -> RigError:
    return RigError(
        what="the download failed",
        where=shown(url),
        why=why,
        fix="check the address and the network and try again; what has arrived is kept",
        code=ExitCode.HOST_FAILED,
    )


def local_file(url: str) -> Path | None:
    """The path of a ``file:`` URL."""
    parts = urlsplit(url)
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


@dataclass(frozen=True)
class Wish:
    """A file to fetch: from where, how long it must be (None: as long as it is), and what the user calls it."""

    url: str
    label: str
    size: int | None = None


def fetch(http: httpx.Client, wish: Wish, target: Path, progress: Progress) -> None:
    """Bring the file to ``target``, going on where an earlier attempt stopped.

    Only the size is checked here, the caller checks the hash. Raises :class:`RigError`.
    """
    source = local_file(wish.url)
    if source is not None:
        try:
            shutil.copyfile(source, target)
        except OSError as error:
            raise _unreachable(wish.url, str(error)) from error
        return
    problem = ""
    for _ in range(ATTEMPTS):
        try:
            if _attempt(http, wish, target, progress):
                return
            problem = "the connection ended early"
        except httpx.HTTPError as error:
            problem = str(error) or type(error).__name__
    raise _unreachable(wish.url, problem)


def _attempt(http: httpx.Client, wish: Wish, target: Path, progress: Progress) -> bool:
    """One request; True when the file is complete."""
    note = target.with_name(f"{target.name}.etag")
    have = target.stat().st_size if target.exists() else 0
    etag = _etag(note, wish.url)
    if wish.size is not None and have == wish.size:
        return True
    if have and (etag is None or (wish.size is not None and have > wish.size)):
        # Nothing says that what is offered now is what this is the beginning of.
        have = 0
    headers = {"Accept-Encoding": "identity"}
    if have and etag:
        headers |= {"Range": f"bytes={have}-", "If-Range": etag}
    with http.stream("GET", wish.url, headers=headers) as answer:
        if answer.status_code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            target.unlink(missing_ok=True)
            return False
        if answer.is_error:
            raise _unreachable(wish.url, f"HTTP status {answer.status_code}")
        start, total = _extent(answer, have)
        if wish.size is not None and total is not None and total != wish.size:
            raise _lies(wish.url, total, wish.size)
        with naming(note):
            note.write_text(json.dumps({"url": wish.url, "etag": answer.headers.get("etag", "")}))
        done = _save(answer, wish, target, start, progress)
    expected = wish.size if wish.size is not None else total
    if expected is not None and done != expected:
        return False
    note.unlink(missing_ok=True)
    return True


def _save(answer: httpx.Response, wish: Wish, target: Path, start: int, progress: Progress) -> int:
    """Write what comes behind ``start``; returns how much of the file is there now."""
    length = answer.headers.get("content-length", "")
    total = wish.size or (start + int(length) if length.isdecimal() else 0)
    done, told = start, 0.0
    with naming(target), target.open("r+b" if start else "wb") as file:
        file.seek(start)
        file.truncate()
        # No chunk size: what waits in httpx for a chunk to fill would be lost with the connection.
        for block in answer.iter_raw():
            done += len(block)
            if wish.size is not None and done > wish.size:
                raise _lies(wish.url, done, wish.size)
            file.write(block)
            if time.monotonic() - told > EVERY_S:
                told = time.monotonic()
                progress(wish.label, done, total)
    progress(wish.label, done, total)
    return done


def _etag(note: Path, url: str) -> str | None:
    try:
        known = json.loads(note.read_text())
    except (OSError, ValueError):
        return None
    etag = known.get("etag") if isinstance(known, dict) and known.get("url") == url else None
    return etag if isinstance(etag, str) and etag and not etag.startswith("W/") else None


def _extent(answer: httpx.Response, have: int) -> tuple[int, int | None]:
    """Where the answer begins in the file, and how long the whole file is."""
    length = answer.headers.get("content-length", "")
    found = _RANGE.fullmatch(answer.headers.get("content-range", ""))
    if answer.status_code == HTTPStatus.PARTIAL_CONTENT and found and int(found[1]) == have:
        return have, int(found[2])
    return 0, int(length) if length.isdecimal() else None
