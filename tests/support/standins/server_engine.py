"""A stand-in for llama-server's HTTP side, to be bent by tests; its answers have the form that build 10454 gave."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import Any

from tests.support.standins.server import Quiet

KEY = "k-0123456789abcdef0123456789abcdef"


@dataclass
class FakeEngine:
    """How the stand-in behaves, and what it was asked."""

    keyed: bool = True
    health: int = 200
    echo_key: bool = False
    """Say the key back, as a hostile server could."""
    drip: bool = False
    """Send one byte now and then, for ever."""
    flood: bool = False
    """Send more than anybody wants to read."""
    garbage: bytes | None = None
    """Answer everything with these bytes."""
    keys_seen: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)


class EngineHandler(Quiet):
    engine: FakeEngine

    def answer(self) -> None:
        engine = self.engine
        engine.paths.append(self.path)
        key = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        engine.keys_seen += [key] if key else []
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if engine.drip or engine.flood:
            return self._stream()
        if engine.garbage is not None:
            return self.reply(200, engine.garbage)
        if self.path == "/health":
            return self._json(engine.health, {"status": "ok"})
        if engine.keyed and self.path != "/v1/models" and key != KEY:
            return self._json(
                401, {"error": {"message": "Invalid API Key", "type": "authentication_error", "code": 401}}
            )
        if self.path == "/metrics":
            return self.reply(200, b"# HELP x y\nllamacpp:prompt_tokens_total 3\nbroken line\n")
        return self._json(200, self._result(key))

    def _json(self, status: int, data: Any) -> None:
        self.reply(status, json.dumps(data).encode(), Content_Type="application/json")

    def _result(self, key: str) -> Any:
        slots = [{"id": at, "n_ctx": 2048, "speculative": False, "is_processing": False} for at in range(2)]
        props = {
            "default_generation_settings": {"params": {}, "n_ctx": 2048}, "total_slots": 2, "model_path": "/m.gguf",
            "modalities": {"vision": False, "audio": False}, "build_info": key if self.engine.echo_key else "b1-x",
            "chat_template": "x" * 100_000,
        }  # fmt: skip
        message = {"role": "assistant", "content": "Hello!"}
        answers: dict[str, Any] = {
            "/props": props,
            "/slots": slots,
            "/v1/models": {"data": [{"id": "m"}]},
            "/v1/chat/completions": {
                "choices": [{"message": message, "finish_reason": "stop"}],
                "timings": {"predicted_n": 3},
            },
        }
        return answers[self.path]

    def _stream(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        block = b"x" * 65536 if self.engine.flood else b"x"
        try:
            for _ in range(400):
                self.wfile.write(f"{len(block):x}\r\n".encode() + block + b"\r\n")
                self.wfile.flush()
                time.sleep(0 if self.engine.flood else 0.1)
        except OSError:
            self.close_connection = True


def handler(engine: FakeEngine) -> type[EngineHandler]:
    """The handler of one stand-in."""
    return type("Engine", (EngineHandler,), {"engine": engine})
