"""The part of a unit's journal that says why its start failed: one attempt, its errors first, a screenful."""

from __future__ import annotations

import re

from llamarig.converge.explain import printable

MOST = 25
"""Lines in all."""
_MOST_ERRORS = 10
_START = re.compile(r"^Starting (?P<unit>\S+\.service)\b")
_FAILED = re.compile(r"Failed with result|Main process exited|Control process exited|^start-probe: ")
_AGAIN = re.compile(r": Scheduled restart job")
_ERROR = re.compile(r"\berror: |^start-probe: ")


def why_it_failed(text: str, unit: str, most: int = MOST) -> list[str]:
    """The last failed attempt of ``unit``, from its line "Starting UNIT" on: lines with errors, then its last lines.

    ``text`` is ``journalctl --output=cat``. systemd may have begun another attempt that says nothing yet; the one
    before it counts then. Lines of a former run are left out.
    """
    attempts: list[list[str]] = [[]]
    for line in printable(text, 1 << 20).splitlines():
        match = _START.match(line)
        if match and match["unit"] == unit:
            attempts.append([])
        attempts[-1].append(line)
    failed = [attempt for attempt in attempts if any(_FAILED.search(line) for line in attempt)]
    lines = [line for line in (failed or attempts)[-1] if not _AGAIN.search(line)]
    errors = list(dict.fromkeys(line for line in lines if _ERROR.search(line)))[:_MOST_ERRORS]
    rest = [line for line in lines if line not in errors]
    room = most - len(errors)
    return errors + (rest[-room:] if room > 0 else [])
