"""A user's own key file: what of it goes to a host, and whether a host still has it, without either being told.

Neither keys nor a plain hash of them (a short key could be guessed from one) are in a wanted state, an observation
or a log. The host answers with a digest that is keyed with a salt of this one look, the controller computes the
same from its file, and all that is left is whether the two agree.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from llamarig.spec.controller_path import below


class Loader(Protocol):
    """The part of Ansible's DataLoader that reads a file and decrypts it in memory where it is an ansible-vault."""

    def get_text_file_contents(self, file_name: str) -> str: ...  # noqa: D102 - Ansible's own


def key_text(loader: Loader, source: str, project: str) -> str:
    """The text that the host's key file holds for ``source``; relative paths start at the project.

    Raises what the loader raises when it cannot be read or decrypted, and UnicodeError when it is no UTF-8.
    """
    read = loader.get_text_file_contents(str(below(Path(project), source)))
    text = read.encode().decode().replace("\r\n", "\n")
    return text if text.endswith("\n") else text + "\n"


def new_salt() -> str:
    """A salt for one look, in hex."""
    return secrets.token_hex(32)


def digest_of(salt: str, text: str) -> str:
    """HMAC-SHA256 of the text, as ``rig_observe`` computes it on the host."""
    return hmac.new(bytes.fromhex(salt), text.encode(), "sha256").hexdigest()


def judge(credentials: Any, salt: str, texts: Mapping[str, str | None]) -> None:
    """Replace the digests in an observation's ``credentials`` by ``agrees``; None where the controller has no file."""
    for path, entry in credentials.items() if isinstance(credentials, dict) else ():
        if not isinstance(entry, dict):
            continue
        digest = entry.pop("digest", None)
        entry.pop("agrees", None)
        if path in texts and entry.get("type") == "file":
            text = texts[path]
            entry["agrees"] = None if text is None else digest == digest_of(salt, text)
