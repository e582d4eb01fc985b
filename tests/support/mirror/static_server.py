"""A web server over one directory that understands ranges: a stand-in for the one that a site runs (nginx, say).

``python3 static_server.py ADDRESS PORT DIRECTORY``, standard library only; prints status, path and range of requests.
"""

from __future__ import annotations

import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

BLOCK = 1 << 20


class Handler(BaseHTTPRequestHandler):
    directory = Path()

    def do_GET(self) -> None:
        path = (self.directory / unquote(urlsplit(self.path).path).lstrip("/")).resolve()
        if not path.is_relative_to(self.directory) or not path.is_file():
            self._begin(404, 0)
            return
        info = path.stat()
        etag = f'"{info.st_mtime_ns:x}-{info.st_size:x}"'
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        begin = int(asked[1]) if asked and self.headers.get("If-Range") in (None, etag) else 0
        self._begin(
            206 if begin else 200, info.st_size - begin, etag, f"bytes {begin}-{info.st_size - 1}/{info.st_size}"
        )
        with path.open("rb") as file:
            file.seek(begin)
            while block := file.read(BLOCK):
                self.wfile.write(block)

    def _begin(self, status: int, length: int, etag: str = "", extent: str = "") -> None:
        sys.stdout.write(f"{status} {self.path} {self.headers.get('Range', '-')}\n")
        sys.stdout.flush()
        self.send_response_only(status)
        self.send_header("Content-Length", str(length))
        if etag:
            self.send_header("ETag", etag)
        if status == 206:
            self.send_header("Content-Range", extent)
        self.end_headers()


if __name__ == "__main__":
    Handler.directory = Path(sys.argv[3]).resolve()
    ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Handler).serve_forever()
