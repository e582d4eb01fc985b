#!/usr/bin/python3 -IBS
"""Stands in for llama-server in the virtual machine, where the real one would take minutes to answer.

It says to the start probe what the real one says (health, 401 without a key, 200 and text with it), and eats memory
(/eat) or starts threads (/threads) until it is stopped. Standard library only.
"""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ARGUMENTS = dict(zip(sys.argv[1:], sys.argv[2:], strict=False))
with open(ARGUMENTS["--api-key-file"], encoding="ascii") as _file:  # noqa: PTH123 - starts faster without pathlib
    KEYS = {line.strip() for line in _file if line.strip() and not line.startswith("#")}
ANSWER = {"choices": [{"message": {"role": "assistant", "content": "Hello."}}]}


def threads() -> int:
    """Start threads until the kernel refuses; how many there were."""
    threading.stack_size(64 * 1024)
    done = threading.Event()
    count = 0
    try:
        while True:
            threading.Thread(target=done.wait, daemon=True).start()
            count += 1
    except RuntimeError:
        return count
    finally:
        done.set()


def eat() -> None:
    """Take memory until somebody stops it."""
    held = []
    while True:
        held.append(bytearray(b"x") * (8 << 20))


class Handler(BaseHTTPRequestHandler):
    """The few endpoints that the start probe asks, and the two that break the limits."""

    def do_GET(self) -> None:
        """Health needs no key."""
        self.answer(200, {"status": "ok"})

    def do_POST(self) -> None:
        """Everything else needs one."""
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Authorization", "").removeprefix("Bearer ") not in KEYS:
            self.answer(401, {"error": "no key"})
        elif self.path == "/threads":
            self.answer(200, {"threads": threads()})
        elif self.path == "/eat":
            eat()
        else:
            self.answer(200, ANSWER)

    def answer(self, status: int, data: object) -> None:
        """Send JSON."""
        body = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


ThreadingHTTPServer((ARGUMENTS["--host"], int(ARGUMENTS["--port"])), Handler).serve_forever()
