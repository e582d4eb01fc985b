"""Events from Ansible to the command line, as JSON objects over a private Unix socket.

The callback plugin and the action plugins are writers: each event is one
connection, so that events of several processes never mix and a writer waits
until its event was read. Nothing is written when nobody listens (plain
``ansible-playbook``). The socket lies in a directory of mode 0700.
"""

from __future__ import annotations

import json
import os
import socket
import socketserver
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

SOCKET_VARIABLE = "LLAMARIG_EVENTS"
"""Environment variable that names the socket."""

LONGEST = 64 << 20
"""Bytes of an event that is taken: an observation has some 100 KB, and what a host says has no other bound."""

Event = dict[str, Any]
Sink = Callable[[Event], None]


def emit(event: Event) -> bool:
    """Send one event; False when nobody listens. Never raises: an event is not worth a failed host."""
    path = os.environ.get(SOCKET_VARIABLE)
    if not path:
        return False
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
            link.settimeout(10)
            link.connect(path)
            link.sendall(json.dumps(event, default=str).encode())
            link.shutdown(socket.SHUT_WR)
            link.recv(1)  # the reader closes when it has everything: order is kept
    except (OSError, ValueError, RecursionError):
        return False
    return True


def progress(host: str, label: str, done: float, total: float, unit: str = "") -> bool:
    """Tell how far a long step is: ``done`` of ``total`` (0 when not known) in ``unit``."""
    return emit({"event": "progress", "host": host, "label": label, "done": done, "total": total, "unit": unit})


class EventServer:
    """Receives events in a thread of its own and hands them to ``sink`` one after the other."""

    def __init__(self, path: Path, sink: Sink) -> None:
        class _Reader(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                text = self.rfile.read(LONGEST + 1)
                try:
                    event = json.loads(text) if len(text) <= LONGEST else None
                except (ValueError, RecursionError):
                    return
                if isinstance(event, dict):
                    sink(event)

        self.path = path
        self._server = socketserver.UnixStreamServer(str(path), _Reader)
        self._server.request_queue_size = 128
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    def __enter__(self) -> EventServer:
        self._server.socket.listen(128)
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        self.path.unlink(missing_ok=True)
