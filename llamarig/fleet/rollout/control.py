"""What another terminal asks of a rollout that runs: a file beside the journal, read between batches of hosts."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from llamarig.errors import naming

PAUSE, ABORT = "pause", "abort"
_FILE = "request"


def ask(place: Path, what: str) -> None:
    """Leave a request; the last one counts, but nothing takes an abort back."""
    if asked(place) == ABORT:
        return
    temporary = place / f".{_FILE}.{secrets.token_hex(8)}"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with naming(place / _FILE), os.fdopen(descriptor, "w") as stream:
            stream.write(what)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    temporary.replace(place / _FILE)


def asked(place: Path) -> str:
    """``pause``, ``abort``, or empty when nothing is asked."""
    try:
        said = (place / _FILE).read_text(encoding="ascii", errors="replace").strip()
    except FileNotFoundError:
        return ""
    return said if said in (PAUSE, ABORT) else ""


def clear(place: Path) -> None:
    """Forget what was asked: it was done, or the rollout goes on."""
    (place / _FILE).unlink(missing_ok=True)
