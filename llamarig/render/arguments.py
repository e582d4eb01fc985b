"""Reading planned arguments back: which flags are passed, and with which values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_FLAG = re.compile(r"--?[a-z][a-z0-9-]*")
_TEXT_VALUES = frozenset({"--alias", "-a", "--host", "--model", "-m", "--chat-template-file", "--override-tensor"})
"""Flags whose value is free text and may look like a flag itself."""


def value_of(argv: Sequence[str], *names: str) -> str | None:
    """The value after the first of the flags ``names`` in ``argv``, or None."""
    for index, word in enumerate(argv[1:-1], 1):
        if word in names and argv[index - 1] not in _TEXT_VALUES:
            return argv[index + 1]
    return None


def flags_of(argvs: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Every flag in ``argvs``, sorted; the engine's help must know them all before a switch."""
    found: set[str] = set()
    for argv in argvs:
        for index, word in enumerate(argv[1:], 1):
            if _FLAG.fullmatch(word) and argv[index - 1] not in _TEXT_VALUES:
                found.add(word)
    return tuple(sorted(found))
