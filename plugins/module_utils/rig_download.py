"""Download one file to a host so that it may stop anywhere and go on there.

Runs alone as a job (``python3 fetch.py URL TARGET SIZE [MIB_S]``), standard library only. It
prints ``[done/total]`` in bytes now and then, and ends with ``error: …`` and status 1
when it gives up. It checks the size; the hash is checked by who uses the file.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from http.client import HTTPException
from pathlib import Path
from typing import Any

ATTEMPTS = 8
BLOCK = 1 << 20
MIB = 1 << 20
EVERY_S = 1.0
TIMEOUT_S = 60.0
LONGEST_WAIT_S = 30.0
PARTIAL = 206
RANGE_REFUSED = 416
SERVER_ERRORS = 500
TRY_LATER = {408, 425, 429}
_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+)")


class Pace:
    """A token bucket: not more than ``rate`` bytes a second, over any stretch longer than a quarter of a second.

    None lets everything through.
    """

    BURST_S = 0.25

    def __init__(self, rate: float | None) -> None:
        self.rate = rate
        self._tokens, self._at = 0.0, time.monotonic()

    def spend(self, count: int) -> None:
        """Account for ``count`` bytes that went over the line, and wait until more may go."""
        if self.rate is None:
            return
        now = time.monotonic()
        self._tokens = min(self.BURST_S * self.rate, self._tokens + (now - self._at) * self.rate) - count
        self._at = now
        if self._tokens < 0:
            time.sleep(-self._tokens / self.rate)

    def block(self, most: int) -> int:
        """How many bytes to move at once: not more than a quarter of a second's worth, but some."""
        return most if self.rate is None else max(1 << 14, min(most, int(self.rate * self.BURST_S)))


class GivenUpError(Exception):
    """Trying again would not help; the text says why."""


class _NoDowngrade(urllib.request.HTTPRedirectHandler):
    """Follows redirects, but never from HTTPS to anything else."""

    def redirect_request(self, req: Any, *answer: Any) -> Any:
        if req.full_url.startswith("https:") and not str(answer[-1]).startswith("https:"):
            raise GivenUpError("the server redirects from https to an address without encryption")
        return super().redirect_request(req, *answer)


def shown(url: str) -> str:
    """The URL without user, password and query: fit for a log."""
    parts = urllib.parse.urlsplit(url)
    return urllib.parse.urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _etag(note: Path, url: str) -> str:
    try:
        known = json.loads(note.read_text())
        return str(known["etag"]) if known["url"] == url else ""
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _request(url: str, have: int, etag: str) -> urllib.request.Request:
    headers = {"User-Agent": "llamarig", "Accept-Encoding": "identity"}
    if have:
        headers |= {"Range": f"bytes={have}-", "If-Range": etag}
    return urllib.request.Request(url, headers=headers)  # noqa: S310 - the scheme is checked in main


def _start(answer: Any, have: int, size: int) -> int:
    """Where the answer begins in the file. Raises :class:`GivenUpError` when it belongs to a file of another size."""
    found = _RANGE.fullmatch(answer.headers.get("Content-Range", "")) if answer.status == PARTIAL else None
    begin = have if found and int(found[1]) == have else 0
    length = answer.headers.get("Content-Length", "")
    total = int(found[2]) if found else int(length) if length.isdecimal() else size
    if answer.status == PARTIAL and not begin:
        raise GivenUpError("the server sent another part of the file than was asked for")
    if total != size:
        raise GivenUpError(
            f"the server offers {total} bytes, pinned are {size}: it was replaced upstream, or is an error page"
        )
    return begin


def _save(answer: Any, target: Path, begin: int, size: int, pace: Pace) -> int:
    """Write what comes; returns how much of the file is there now."""
    told, done = 0.0, begin
    handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.seek(begin)
        file.truncate()
        while block := answer.read(pace.block(BLOCK)):
            done += len(block)
            if done > size:
                raise GivenUpError(f"the server sends more than the {size} bytes that are pinned")
            file.write(block)
            pace.spend(len(block))
            if time.monotonic() - told > EVERY_S:
                told = time.monotonic()
                sys.stdout.write(f"[{done}/{size}]\n")
                sys.stdout.flush()
        file.flush()
        os.fsync(file.fileno())
    return done


def attempt(url: str, target: Path, size: int, pace: Pace) -> bool:
    """One request; True when the file is complete. Raises :class:`GivenUpError`, OSError or HTTPException."""
    note = target.with_name(f"{target.name}.etag")
    have = target.stat().st_size if target.exists() else 0
    if have == size:
        return True
    etag = _etag(note, url)
    if have > size or not etag or etag.startswith("W/"):
        # Nothing says that what is offered now is what this is the beginning of.
        have = 0
    opener = urllib.request.build_opener(_NoDowngrade)
    try:
        with opener.open(_request(url, have, etag), timeout=TIMEOUT_S) as answer:
            begin = _start(answer, have, size)
            note.write_text(json.dumps({"url": url, "etag": answer.headers.get("ETag", "")}))
            return _save(answer, target, begin, size, pace) == size
    except urllib.error.HTTPError as error:
        if error.code == RANGE_REFUSED:
            target.unlink(missing_ok=True)
            return False
        if error.code < SERVER_ERRORS and error.code not in TRY_LATER:
            raise GivenUpError(f"the server answers {error.code} {error.reason}") from error
        raise


def download(url: str, target: Path, size: int, rate: float | None = None) -> None:
    """Bring the file to ``target``, at ``rate`` bytes a second at most.

    Raises :class:`GivenUpError`; what has arrived stays for the next run.
    """
    why, wait, pace = "", 1.0, Pace(rate)
    for _ in range(ATTEMPTS):
        try:
            if attempt(url, target, size, pace):
                return
            why = "the connection ended early"
        except (OSError, HTTPException) as error:
            why = str(error) or type(error).__name__
        sys.stdout.write(f"trying again: {why}\n")
        sys.stdout.flush()
        time.sleep(wait)
        wait = min(wait * 2, LONGEST_WAIT_S)
    raise GivenUpError(f"{why} (tried {ATTEMPTS} times)")


def main(argv: list[str]) -> int:
    """Exit status of the job."""
    url, target, size = argv[1], Path(argv[2]), int(argv[3])
    limit = float(argv[4]) if len(argv) > 4 else 0.0  # noqa: PLR2004 - the place of the fourth argument
    try:
        if not url.startswith(("https://", "http://")):
            raise GivenUpError("only http and https are fetched")
        download(url, target, size, limit * MIB if limit else None)
    except GivenUpError as error:
        sys.stdout.write(f"error: {shown(url)}: {error}\n")
        return 1
    sys.stdout.write(f"[{size}/{size}]\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
