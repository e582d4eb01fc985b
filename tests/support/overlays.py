"""A project of two hosts, and the beginning of an overlay for one of them."""

from __future__ import annotations

from pathlib import Path

from tests.support.spec_files import spec, write

HEAD = "schema-version: 1\nhost: box\n"
ENTRY = "  - {key: services.chat.context, value: 2048, reason: small}\n"


def project_of(tmp_path: Path) -> Path:
    for host in ("box", "other"):
        write(tmp_path / f"inventory/{host}.yml", spec(host))
    return tmp_path
