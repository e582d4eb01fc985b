"""A project of two hosts, and the beginning of an overlay for one of them."""

from __future__ import annotations

from pathlib import Path

SHA = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
SPEC = f"""schema-version: 1
host: box
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
HEAD = "schema-version: 1\nhost: box\n"
ENTRY = "  - {key: services.chat.context, value: 2048, reason: small}\n"


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def project_of(tmp_path: Path) -> Path:
    write(tmp_path / "inventory/box.yml", SPEC)
    write(tmp_path / "inventory/other.yml", SPEC.replace("host: box", "host: other"))
    return tmp_path
