"""The smallest spec of a host, and writing files of a project."""

from __future__ import annotations

from pathlib import Path

SHA = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


def spec(host: str) -> str:
    """The text of a valid spec of that host; its service `chat` has a window of 4096 and the port 8080."""
    return f"""schema-version: 1
host: {host}
os: {{distribution: debian, release: "13"}}
engine:
  commit: 4df29be4f
  build-number: 10454
  source: {{sdist: llama_cpp_python==0.3.35, sha256: {SHA}}}
  backend: cpu
models:
  m: {{host-path: /srv/m.gguf, sha256: {SHA}, size: 1}}
services:
  chat: {{model: m, context: 4096, listen: {{port: 8080}}}}
"""


def write(path: Path, text: str) -> Path:
    """The file with that text, its directory made when absent."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path
