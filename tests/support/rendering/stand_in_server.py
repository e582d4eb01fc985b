#!/usr/bin/python3
"""Stands in for llama-server where no engine is built: listens, asks for a key, answers with text.

It answers /health, /v1/chat/completions, and /seen with its own argv and environment. Composed after
the engine's documented behaviour; the demo host runs the real one.
"""

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


def value(flag):
    return sys.argv[sys.argv.index(flag) + 1]


class Handler(BaseHTTPRequestHandler):
    def answer(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        seen = {"argv": sys.argv, "environment": dict(os.environ), "pid": os.getpid()}
        self.answer(200, seen if self.path == "/seen" else {"status": "ok"})

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        lines = Path(value("--api-key-file")).read_text(encoding="ascii").splitlines()
        keys = [f"Bearer {line}" for line in lines if line and line[0] != "#"]
        if self.headers.get("Authorization") not in keys:
            self.answer(401, {"error": {"code": 401}})
            return
        self.answer(200, {"choices": [{"message": {"content": "Hello."}}]})

    def log_message(self, *arguments):
        pass


ThreadingHTTPServer((value("--host"), int(value("--port"))), Handler).serve_forever()
