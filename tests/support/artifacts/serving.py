"""A server that answers as file servers do, and lies where a test asks it to (composed)."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Served:
    """What is served, and how. ``requests`` are (path, Range header) in order."""

    files: dict[str, bytes] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    etag: str | None = '"one"'
    ranges: bool = True
    cut_after: list[int] = field(default_factory=list)
    """Bytes after which the connection is cut, one entry an answer."""
    claim: int | None = None
    """A length that is not true."""
    no_length: bool = False
    status: int = 0
    redirect: dict[str, str] = field(default_factory=dict)
    requests: list[tuple[str, str]] = field(default_factory=list)
    base: str = ""


def _handler(served: Served) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.0"

        def do_GET(self) -> None:
            served.requests.append((self.path, self.headers.get("Range", "")))
            if self.path in served.redirect:
                self.send_response(302)
                self.send_header("Location", served.redirect[self.path])
                self.end_headers()
                return
            body = served.files.get(self.path)
            if body is None or served.status:
                self.send_error(served.status or 404)
                return
            self._answer(body)

        def _answer(self, body: bytes) -> None:
            start = 0
            found = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
            fresh = self.headers.get("If-Range") in (None, served.etag)
            if found and served.ranges and fresh:
                start = int(found[1])
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
            else:
                self.send_response(200)
            if not served.no_length:
                self.send_header("Content-Length", str(served.claim or len(body) - start))
            if served.etag:
                self.send_header("ETag", served.etag)
            self.send_header("Content-Type", served.types.get(self.path, "application/octet-stream"))
            self.end_headers()
            rest = body[start:]
            self.wfile.write(rest[: served.cut_after.pop(0)] if served.cut_after else rest)

        def log_message(self, *_: object) -> None:
            pass

    return Handler


@contextmanager
def serving(served: Served) -> Iterator[Served]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(served))
    served.base = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
