"""Files that lie on the controller: a template that is read while planning, and secrets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from llamarig.spec.controller_path import below
from llamarig.spec.rules.base import Broken, View
from llamarig.spec.tree import Loc


def _is_there(root: Path, name: str) -> bool:
    try:
        return below(root, name).is_file()
    except (OSError, ValueError):
        return False


def templates(view: View) -> Iterator[Broken]:
    """A chat template is a file of the project."""
    for name, service in view.spec.services.items():
        template = service.chat_template
        if template is not None and not _is_there(view.root, template):
            yield Broken(
                ("services", name, "chat-template"),
                f"the project has no file {template}",
                f"put it there ({view.root / template}), or remove `chat-template` for the model's own",
            )


def secrets(view: View) -> Iterator[Broken]:
    """Files with secrets are there on the controller that applies; a check elsewhere may lack them."""
    connection = view.spec.connection
    named: list[tuple[Loc, str | None]] = [
        (("connection", "identity-file"), connection.identity_file),
        (("connection", "become-password-file"), connection.become_password_file),
    ]
    for name, service in view.spec.services.items():
        named.append((("services", name, "listen", "keys", "file"), service.listen.keys.file))
    for loc, file in named:
        if file is not None and not _is_there(view.root, file):
            yield Broken(
                loc,
                f"{file} is not on this controller",
                "fine where another controller applies; else put it there, below the project or by its whole path",
                warning=True,
            )


_VAULT = b"$ANSIBLE_VAULT;"
_LARGEST = 1 << 20
_KEY = re.compile(rb"[!-~]{16,512}")


def key_files(view: View) -> Iterator[Broken]:
    """A key file that lies here holds keys that the host will take; nothing of it is ever said but a line's number."""
    for name, service in view.spec.services.items():
        file = service.listen.keys.file
        wrong = _wrong_keys(view.root, file) if file is not None and _is_there(view.root, file) else None
        if wrong is not None:
            yield Broken(
                ("services", name, "listen", "keys", "file"),
                f"{file} {wrong}",
                "write one key a line, 16 to 512 printable characters without a space (openssl rand -hex 32)",
            )


def _wrong_keys(root: Path, name: str) -> str | None:
    """What the host would refuse of it; None for a vault, for what cannot be read here, and for good keys."""
    try:
        with below(root, name).open("rb") as stream:
            content = stream.read(_LARGEST)
    except OSError:
        return None
    if content.startswith(_VAULT):
        return None
    lines = [(number, line.removesuffix(b"\r")) for number, line in enumerate(content.split(b"\n"), 1)]
    held = [(number, line) for number, line in lines if line and not line.startswith(b"#")]
    if not held:
        return "holds no key: the server would start without one"
    for number, line in held:
        if _KEY.fullmatch(line) is None:
            return f"holds a line that is no key: line {number}"
    return None


RULES = (templates, secrets, key_files)
