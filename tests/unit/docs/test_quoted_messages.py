"""The messages that the pages of refusals list are those that the code holds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.docs import refusals

CODE = ("llamarig", "plugins", "roles", "playbooks", "templates")
HOLE = re.compile(r"…|: |\b[A-Z]+\b|`|'|\d[\d,]*")
"""Where a message has names, numbers or another message in it."""
SHORTEST = 12


def source() -> str:
    """All code as one line, with the expressions of f-strings and the seams of split strings taken out."""
    texts = [
        path.read_text(encoding="utf-8")
        for place in CODE
        for path in sorted((refusals.ROOT / place).rglob("*"))
        if path.suffix in {".py", ".yml", ".j2"} or path.name == "start-probe"
    ]
    whole = re.sub(r"\{[^{}]*\}", "\0", "\n".join(texts))
    return re.sub(r"\s+", " ", re.sub(r"[\"']\s*\n\s*f?[\"']", "", whole))


SOURCE = source()


def listed(text: str) -> list[str]:
    """The messages in the first column of a page's tables."""
    rows = [line.split(" | ")[0] for line in text.splitlines() if line.startswith("| ")]
    return [quoted for row in rows for quoted in re.findall(r"`([^`]+)`", row)]


def strange(text: str) -> list[str]:
    """Parts of listed messages that no code says."""
    parts = [part.strip(" .,:;()?") for message in listed(text) for part in HOLE.split(message)]
    return [part for part in parts if len(part) >= SHORTEST and " " in part and part not in SOURCE]


@pytest.mark.parametrize("path", refusals.pages(), ids=lambda path: path.stem)
def test_every_listed_message_is_said_by_the_code(path: Path) -> None:
    assert strange(path.read_text(encoding="utf-8")) == []


def test_a_message_that_nobody_says_is_seen() -> None:
    assert strange("| `the moon is made of green cheese: …` | look up |\n") == ["the moon is made of green cheese"]


def test_messages_are_found_at_all() -> None:
    found = [message for path in refusals.pages() for message in listed(path.read_text(encoding="utf-8"))]
    assert len(found) > 60
