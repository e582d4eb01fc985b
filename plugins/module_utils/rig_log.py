"""Read the log of a long job: what went wrong, in the tool's own words."""

from __future__ import annotations

import re

LIMIT = 4000
CONTEXT = 12
TAIL = 15
_STEP = re.compile(r"\[(\d+)/(\d+)\]")
_STEP_ALONE = re.compile(r"\[\d+/\d+\]")
_CMAKE = re.compile(r"^CMake Error")
_ERROR = re.compile(r"(?:\b(?:fatal )?error: |undefined reference to|No space left on device|Killed)")
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def printable(text: str) -> str:
    """The text without terminal escapes and other control characters (a log is hostile text)."""
    return _CONTROL.sub("", text)


def error_text(log: str) -> str:
    """The part of a build log that says why it failed, at most 4,000 characters.

    In order: the first failed step of ninja with its compiler's output (the command line is
    left out), the first error of CMake, the lines around the first error, the last lines.
    """
    lines = [line for line in printable(log).splitlines() if not _STEP_ALONE.fullmatch(line)]
    for find in (_failed_step, _cmake_error, _first_error):
        part = find(lines)
        if part:
            return "\n".join(part).strip()[:LIMIT]
    return "\n".join(lines[-TAIL:])[-LIMIT:]


def _failed_step(lines: list[str]) -> list[str]:
    start = next((number for number, line in enumerate(lines) if line.startswith("FAILED: ")), None)
    if start is None:
        return []
    body = []
    for line in lines[start + 2 :]:
        if _STEP.match(line) or line.startswith("ninja: "):
            break
        body.append(line)
    first = next((number for number, line in enumerate(body) if _ERROR.search(line)), 0)
    return [lines[start], *body[max(0, first - 4) : first + 2 * CONTEXT]]


def _cmake_error(lines: list[str]) -> list[str]:
    start = next((number for number, line in enumerate(lines) if _CMAKE.match(line)), None)
    if start is None:
        return []
    rest = lines[start + 1 : start + 2 * CONTEXT]
    end = next((number for number, line in enumerate(rest) if line.startswith(("-- ", "CMake "))), len(rest))
    return [lines[start], *rest[:end]]


def _first_error(lines: list[str]) -> list[str]:
    start = next((number for number, line in enumerate(lines) if _ERROR.search(line)), None)
    return [] if start is None else lines[max(0, start - 4) : start + CONTEXT]
