"""A local HTTP server for tests: loopback, any free port, gone with the block."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Quiet(BaseHTTPRequestHandler):
    """Says nothing on the terminal and answers in HTTP/1.1, as the real services do."""

    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        """What a stand-in does with a request, whatever its method."""
        raise NotImplementedError

    def log_message(self, *_words: object) -> None:
        return

    def reply(self, status: int, body: bytes = b"", **headers: str) -> None:
        """One whole answer; a header's underscores become dashes."""
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _dispatch(handler: Quiet) -> None:
    handler.answer()


for _method in ("GET", "HEAD", "POST"):
    setattr(Quiet, f"do_{_method}", _dispatch)


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """The address of a server that answers with ``handler``."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
