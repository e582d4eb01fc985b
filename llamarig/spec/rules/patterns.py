"""Regular expressions of tensor overrides: what the engine and Python read alike, and what is searched in no time.

The engine builds a ``std::regex`` (ECMAScript) of the pattern; source: ``parse_tensor_buffer_overrides`` in
common/arg.cpp and ``buft_for_tensor`` in src/llama-model-loader.cpp. A plan searches the same names with Python's
``re``. The two agree on a small language, and this reads that one and refuses the rest.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LONGEST = 300
"""Characters of a pattern."""
DEEPEST = 20
"""Groups within each other."""
MOST_REPEATS = 64
"""The largest number in braces."""
UNBOUNDED = 32
"""Ways in which ``.*`` may match a part of a name: about the characters of one."""
MOST_WAYS = UNBOUNDED**4
"""Ways in which a pattern may match that are still tried in no time, for a thousand names."""

_TOO_MANY = "it may match in too many ways; use fewer `*`, `+`, `?` and `|`"
_GROUPS = ("(?:", "(?!", "(")
"""A look ahead, `(?=`, cannot be written: the engine ends a pattern at the first `=`."""
_ESCAPES = re.compile(r"\\(?:[dDsSwW]|[^\w\s])")
_EDGES = re.compile(r"\^|\$|\\[bB]")
_QUANTIFIER = re.compile(r"(?:[*+?]|\{([0-9]{1,3})\})")
_DOUBTFUL = ("--", "&&", "~~", "||", "[")
"""What a later Python, or the engine already, reads as more than characters of a class."""


class _RefusedError(Exception):
    """What is wrong with a pattern."""


@dataclass(slots=True)
class _Group:
    """A group that is being read, with the ways in which it may match."""

    kind: str
    done: int = 0
    """Ways of the branches before the one that is being read."""
    ways: int = 1
    """Ways of this branch, up to the last item."""
    item: int = 0
    """Ways of the last item; 0 when there is none that may be repeated."""

    def add(self, ways: int) -> None:
        self.close_item()
        self.item = ways

    def close_item(self) -> None:
        self.ways *= self.item or 1
        self.item = 0
        if self.ways > MOST_WAYS:
            raise _RefusedError(_TOO_MANY)

    def close_branch(self) -> None:
        self.close_item()
        self.done += self.ways
        self.ways = 1
        if self.done > MOST_WAYS:
            raise _RefusedError(_TOO_MANY)


def trouble(pattern: str) -> str | None:
    """Why a pattern cannot be planned with; None when it can."""
    if len(pattern) > LONGEST:
        return f"the pattern is longer than {LONGEST} characters"
    if not pattern.isascii() or not pattern.isprintable():
        return "the pattern holds more than plain ASCII characters, as no tensor's name does"
    try:
        _read(pattern)
        re.compile(pattern)
    except (_RefusedError, re.error) as error:
        return f"the pattern is none that the engine and the plan read alike: {error}"
    return None


def _read(pattern: str) -> None:
    stack = [_Group("")]
    at = 0
    while at < len(pattern):
        at = _step(pattern, at, stack)
    if len(stack) > 1:
        raise _RefusedError("a `(` is not closed")
    stack[0].close_branch()


def _step(pattern: str, at: int, stack: list[_Group]) -> int:
    """Read one thing, and say where the next one begins."""
    top, sign = stack[-1], pattern[at]
    if sign in "*+?{":
        return _repeat(pattern, at, top)
    if found := _EDGES.match(pattern, at):
        top.close_item()
        return found.end()
    if sign == "(":
        kind = next(kind for kind in _GROUPS if pattern.startswith(kind, at))
        if len(stack) > DEEPEST:
            raise _RefusedError(f"more than {DEEPEST} groups within each other")
        stack.append(_Group(kind))
        return at + len(kind)
    if sign == ")":
        _end_group(stack)
    elif sign == "|":
        top.close_branch()
    elif sign == "[":
        at = _class(pattern, at)
        top.add(1)
    elif sign == "\\":
        found = _ESCAPES.match(pattern, at)
        if found is None:
            raise _RefusedError(f"`{pattern[at : at + 2]}`")
        top.add(1)
        return found.end()
    else:
        top.add(1)
    return at + 1


def _end_group(stack: list[_Group]) -> None:
    if len(stack) == 1:
        raise _RefusedError("a `)` closes nothing")
    group = stack.pop()
    group.close_branch()
    stack[-1].add(group.done)
    if group.kind == "(?!":
        stack[-1].close_item()  # a look ahead may not be repeated


def _repeat(pattern: str, at: int, top: _Group) -> int:
    found = _QUANTIFIER.match(pattern, at)
    if found is None:
        raise _RefusedError("a `{` that begins no number of repeats, such as `{2}`")
    if not top.item:
        raise _RefusedError(f"`{found[0]}` repeats nothing that may be repeated")
    end = found.end()
    if pattern[end : end + 1] in {"*", "+", "{"}:
        raise _RefusedError(f"`{pattern[at : end + 1]}`")
    if found[0] == "?":
        top.item += 1
    elif top.item > 1:
        raise _RefusedError(f"`{found[0]}` repeats a group that holds `*`, `+`, `?`, `|` or braces")
    elif found[1] is None:
        top.item = UNBOUNDED
    elif not 0 < int(found[1]) <= MOST_REPEATS:
        raise _RefusedError(f"`{found[0]}` is not 1 to {MOST_REPEATS} repeats")
    else:
        top.item = 2  # not more ways, but no group of groups of groups either
    top.close_item()
    lazy = pattern.startswith("?", end)
    return end + lazy


def _class(pattern: str, at: int) -> int:
    """Where the ``]`` is that ends the class which begins at ``at``."""
    begin = at + 1 + pattern.startswith("^", at + 1)
    end = begin
    while end < len(pattern) and pattern[end] != "]":
        if pattern[end] == "\\":
            found = _ESCAPES.match(pattern, end)
            if found is None:
                raise _RefusedError(f"`{pattern[end : end + 2]}`")
            end = found.end()
            continue
        odd = next((odd for odd in _DOUBTFUL if pattern.startswith(odd, end)), None)
        if odd is not None:
            raise _RefusedError(f"`{odd}` within `[ ]`")
        end += 1
    if end >= len(pattern):
        raise _RefusedError("a `[` is not closed")
    if end == begin:
        raise _RefusedError("`[]` holds nothing")
    return end
