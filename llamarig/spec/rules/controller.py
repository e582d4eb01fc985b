"""Files that lie on the controller: a template that is read while planning, and secrets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from llamarig.spec.rules.base import Broken, View
from llamarig.spec.tree import Loc


def _is_there(root: Path, name: str) -> bool:
    try:
        return (root / Path(name).expanduser()).is_file()
    except (OSError, RuntimeError, ValueError):
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


RULES = (templates, secrets)
