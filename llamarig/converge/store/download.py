"""Download a file so that it may stop anywhere and go on there."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit, urlunsplit

from llamarig.converge.store.pip_config import PipConfig
from llamarig.converge.store.shelf import CHUNK, Progress
from llamarig.errors import ExitCode, RigError

if TYPE_CHECKING:
    import httpx

ATTEMPTS = 5
_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+)")


def shown(url: str) -> str:
    """The URL without user, password and query: fit for a message."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def client(config: PipConfig | None = None) -> httpx.Client:
    """An HTTP client that trusts what pip is configured to trust."""
    import ssl

    import httpx

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
        fix="the file was replaced upstream, or this is an error page; pin the content that you want with `llamarig lock`",
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


def fetch(  # noqa: PLR0913 - one download has this many sides
    http: httpx.Client, url: str, target: Path, *, size: int | None, label: str, progress: Progress
) -> None:
    """Bring the file at ``url`` to ``target``, going on where an earlier attempt stopped.

    Only the size is checked here, the caller checks the hash. Raises :class:`RigError`.
    """
    source = local_file(url)
    if source is not None:
        try:
            shutil.copyfile(source, target)
        except OSError as error:
            raise _unreachable(url, str(error)) from error
        return
    import httpx

    problem = ""
    for _ in range(ATTEMPTS):
        try:
            if _attempt(http, url, target, size, label, progress):
                return
            problem = "the connection ended early"
        except httpx.HTTPError as error:
            problem = str(error) or type(error).__name__
    raise _unreachable(url, problem)


def _attempt(  # noqa: PLR0913 - as fetch
    http: httpx.Client, url: str, target: Path, size: int | None, label: str, progress: Progress
) -> bool:
    """One request; True when the file is complete."""
    note = target.with_name(f"{target.name}.etag")
    have = target.stat().st_size if target.exists() else 0
    etag = _etag(note, url)
    if size is not None and have == size:
        return True
    if have and (etag is None or (size is not None and have > size)):
        # Nothing says that what is offered now is what this is the beginning of.
        have = 0
    headers = {"Accept-Encoding": "identity"}
    if have and etag:
        headers |= {"Range": f"bytes={have}-", "If-Range": etag}
    with http.stream("GET", url, headers=headers) as answer:
        if answer.status_code == httpx_status("REQUESTED_RANGE_NOT_SATISFIABLE"):
            target.unlink(missing_ok=True)
            return False
        if answer.is_error:
            raise _unreachable(url, f"HTTP status {answer.status_code}")
        start, total = _extent(answer, have)
        if size is not None and total is not None and total != size:
            raise _lies(url, total, size)
        note.write_text(json.dumps({"url": url, "etag": answer.headers.get("etag", "")}))
        done = start
        with target.open("r+b" if start else "wb") as file:
            file.seek(start)
            file.truncate()
            for block in answer.iter_raw(CHUNK):
                done += len(block)
                if size is not None and done > size:
                    raise _lies(url, done, size)
                file.write(block)
                progress(label, done, size or total or 0)
    expected = size if size is not None else total
    if expected is not None and done != expected:
        return False
    note.unlink(missing_ok=True)
    return True


def httpx_status(name: str) -> int:
    """A status code by its name."""
    from http import HTTPStatus

    return int(HTTPStatus[name])


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
    found = _RANGE.fullmatch(answer.headers.get("content-range", "")) if answer.status_code == httpx_status("PARTIAL_CONTENT") else None
    if found and int(found[1]) == have:
        return have, int(found[2])
    return 0, int(length) if length.isdecimal() else None
