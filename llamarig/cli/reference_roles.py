"""Writes ``docs/reference/roles.md`` from the roles' argument specs: ``python -m llamarig.cli.reference_roles``."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import yaml

from llamarig.paths import data_root

FILE = data_root() / "docs" / "reference" / "roles.md"
"""Where the page lies in a checkout."""

ORDER = ("base", "nvidia_driver", "cuda_toolkit", "llama_cpp", "power", "models", "services", "record", "reboot")
"""The roles as an apply runs them."""

_HEAD = """\
# Roles

Written from the roles' argument specs by `python -m llamarig.cli.reference_roles`; do not edit it here.

An apply runs these roles in this order, each only when an action names something of its own. Their variables come
from the wanted state, which llamarig renders from the spec; they are set by hand only where a role is used in a play of
your own. How the command and plain `ansible-playbook` share them: [plain Ansible](../how-to/plain-ansible-playbook.md).
"""


def _spec(role: str) -> dict[str, Any]:
    path = data_root() / "roles" / role / "meta" / "argument_specs.yml"
    found: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))["argument_specs"]["main"]
    return found


def _words(text: Any) -> str:
    """Ansible's own markup as Markdown; a list of sentences as one paragraph."""
    joined = " ".join((" ".join(text) if isinstance(text, list) else str(text or "")).split())
    return re.sub(r"[CI]\(([^)]*)\)", r"`\1`", joined).replace("|", "\\|")


def _default(value: Any) -> str:
    """A default as Ansible reads it, without the braces of a template that is nothing but one expression."""
    if value in (None, ""):
        return ""
    # A cell of a table is one line, whatever the file folds.
    shown = str(value).lower() if isinstance(value, bool) else " ".join(str(value).split())
    if shown.startswith("{{") and shown.endswith("}}") and shown.count("{{") == 1:
        shown = shown[2:-2].strip()
    return f"`{shown}`".replace("|", "\\|")


def text() -> str:
    """The whole page."""
    parts = [_HEAD]
    for role in ORDER:
        spec = _spec(role)
        parts.append(f"\n## `{role}`\n\n{spec['short_description']}. {_words(spec.get('description'))}\n")
        parts.append("\n| variable | type | default | |\n|---|---|---|---|\n")
        for name, option in spec["options"].items():
            kind = option["type"] + (f" of {option['elements']}" if "elements" in option else "")
            parts.append(
                f"| `{name}` | {kind} | {_default(option.get('default'))} | {_words(option['description'])} |\n"
            )
    return "".join(parts)


def main(file: Path = FILE) -> None:
    """Write the page."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
