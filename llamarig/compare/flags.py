"""Which arguments and variables differ, named one by one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from llamarig.compare.text import printable

_FLAG = re.compile(r"--?[A-Za-z][A-Za-z0-9-]*")
_LONGEST_WORD = 4096
"""Characters of an argument that an observation hands on."""
_SECRETS = ("--api-key", "--hf-token", "-hft")
_SHOWN = 60


def _by_flag(argv: Sequence[str]) -> dict[str, list[str]]:
    """Flag -> its values in order; words before the first flag are under an empty name."""
    found: dict[str, list[str]] = {}
    flag = ""
    for word in argv:
        name, sign, value = word.partition("=")
        if _FLAG.fullmatch(name if sign else word):
            flag = name
            found.setdefault(flag, [])
            if sign:
                found[flag].append(value)
        else:
            found.setdefault(flag, []).append(word)
    return found


def _values(flag: str, values: list[str]) -> str:
    if flag in _SECRETS:
        return "<hidden>"
    return printable(" ".join(values), _SHOWN) if values else "(none)"


def same_arguments(running: object, wanted: Sequence[str]) -> bool:
    """Whether a process was started with exactly these arguments."""
    return isinstance(running, list) and running == [word[:_LONGEST_WORD] for word in wanted]


def argument_changes(running: object, wanted: Sequence[str]) -> list[str]:
    """What starting with ``wanted`` changes for a process started with ``running``: ``--ctx-size 4096 -> 8192``."""
    if not running or not isinstance(running, list) or not all(isinstance(word, str) for word in running):
        return ["the arguments of the running process are not known"]
    if same_arguments(running, wanted):
        return []
    old, new = _by_flag(running[1:]), _by_flag([word[:_LONGEST_WORD] for word in wanted[1:]])
    changes = [f"program {printable(running[0])} -> {printable(wanted[0])}"] if running[:1] != list(wanted[:1]) else []
    for flag in [*new, *(flag for flag in old if flag not in new)]:
        name = printable(flag, _SHOWN) or "words without a flag"
        if flag not in old:
            changes.append(f"{name} {_values(flag, new[flag])} added" if new[flag] else f"{name} added")
        elif flag not in new:
            changes.append(f"{name} dropped")
        elif old[flag] != new[flag]:
            changes.append(f"{name} {_values(flag, old[flag])} -> {_values(flag, new[flag])}")
    return changes or ["the same arguments in another order"]


def variable_changes(running: object, wanted: Mapping[str, str], prefixes: Sequence[str]) -> list[str]:
    """The same for the environment variables that begin with ``prefixes``."""
    seen: Mapping[str, Any] = running if isinstance(running, Mapping) else {}
    planned = {key: value for key, value in wanted.items() if key.startswith(tuple(prefixes))}
    changes: list[str] = []
    for key in sorted({*planned, *(key for key in seen if isinstance(key, str))}):
        if key not in planned:
            changes.append(f"variable {printable(key, _SHOWN)} dropped")
        elif key not in seen:
            changes.append(f"variable {key} added")
        elif seen[key] != planned[key]:
            changes.append(f"variable {key} {printable(seen[key], _SHOWN)} -> {printable(planned[key], _SHOWN)}")
    return changes
