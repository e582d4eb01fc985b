"""The start probe as a module, and a stand-in server for it (composed from the engine's documented answers)."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

from llamarig.paths import data_root

PATH = data_root() / "templates/opt/llamarig/libexec/start-probe"
KEY = "k" * 32
OTHER_KEY = "o" * 32


def load() -> ModuleType:
    loader = importlib.machinery.SourceFileLoader("start_probe", str(PATH))
    spec = importlib.util.spec_from_loader("start_probe", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


@dataclass
class Behaviour:
    """How the stand-in answers; every default is what a sound server does."""

    keys: tuple[str, ...] = (KEY,)
    loading: int = 0
    """How many times /health still says 503."""
    health: int = 200
    chat: tuple[int, Any] = (200, {"choices": [{"message": {"content": "Hello."}}]})
    raw: tuple[int, Any] = (200, {"content": " four"})
    origin: str | None = None
    """Access-Control-Allow-Origin."""
    on_health: Callable[[], None] | None = None
    asked: list[tuple[str, str | None]] = field(default_factory=list)


def _handler(behaviour: Behaviour) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def answer(self, status: int, body: Any) -> None:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            if behaviour.origin is not None:
                self.send_header("Access-Control-Allow-Origin", behaviour.origin)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self) -> None:
            behaviour.asked.append((self.path, self.headers.get("Authorization")))
            if behaviour.on_health is not None:
                behaviour.on_health()
            if behaviour.loading > 0:
                behaviour.loading -= 1
                self.answer(503, {"error": {"message": "Loading model"}})
                return
            self.answer(behaviour.health, {"status": "ok"})

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            given = self.headers.get("Authorization")
            behaviour.asked.append((self.path, given))
            if behaviour.keys and (given or "").removeprefix("Bearer ") not in behaviour.keys:
                self.answer(401, {"error": {"message": "Invalid API Key"}})
                return
            self.answer(*(behaviour.chat if self.path == "/v1/chat/completions" else behaviour.raw))

        def log_message(self, *arguments: Any) -> None:
            """Quiet."""

    return Handler


class _UnixServer(ThreadingHTTPServer):
    address_family = socket.AF_UNIX

    def server_bind(self) -> None:
        path: Any = self.server_address
        self.socket.bind(path)
        self.server_name, self.server_port = "localhost", 0

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, _ = super().get_request()
        return connection, ("socket", 0)


@contextmanager
def serving(
    behaviour: Behaviour, *, unix: Path | None = None, certificate: tuple[Path, Path] | None = None
) -> Iterator[int]:
    """The stand-in on a port of its own (its number is given), or on a unix socket."""
    if unix is not None:
        path: Any = str(unix)
        server: ThreadingHTTPServer = _UnixServer(path, _handler(behaviour))
    else:
        server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(behaviour))
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*map(str, certificate))
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def config(tmp: Path, port: int = 0, **changed: Any) -> dict[str, Any]:
    """A configuration as rendering writes it, with a good key file."""
    keys = tmp / "keys"
    if not keys.exists():
        keys.write_text(f"# made by a test\n{KEY}\n{OTHER_KEY}\n")
    model = tmp / "model.gguf"
    model.write_bytes(b"GGUF")
    base: dict[str, Any] = {
        "schema": 1,
        "service": "chat",
        "address": "127.0.0.1",
        "port": port,
        "connect": "127.0.0.1",
        "keys": str(keys),
        "min-key-length": 16,
        "certificate": None,
        "files": [str(model)],
        "nodes": [],
        "environment": [],
        "cleared": ["LLAMA_", "GGML_", "MTMD_"],
        "timeout-s": 5,
    }
    return base | changed


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
