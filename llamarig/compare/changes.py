"""Unified diffs of the text files that differ, where their content is known."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import unified_diff
from typing import Any

from llamarig.compare.action import Action
from llamarig.compare.text import printable
from llamarig.render.wanted import Wanted

_LONGEST_LINE = 400
_MOST_LINES = 400


def file_diff(wanted: Wanted, observed: Mapping[str, Any], action: Action) -> list[str]:
    """Lines of the diff from what is on the host to what is wanted; none where the host's text is not known.

    A file that is not there yet is shown whole. Every line is escaped and
    without secrets; what is too long is cut, and says so.
    """
    file = next((each for each in wanted.files if each.path == action.subject), None)
    entries = observed.get("files")
    entry = entries.get(action.subject) if isinstance(entries, Mapping) else None
    if action.kind != "file" or file is None or not isinstance(entry, Mapping):
        return []
    lines = [] if entry.get("type") == "absent" else entry.get("lines")
    if not isinstance(lines, list):
        return []
    before = [printable(line, _LONGEST_LINE) for line in lines]
    after = [printable(line, _LONGEST_LINE) for line in file.content.splitlines()]
    names = ("/dev/null" if entry.get("type") == "absent" else f"host{file.path}", f"spec{file.path}")
    diff = list(unified_diff(before, after, *names, lineterm=""))
    cut = [f"… {len(diff) - _MOST_LINES} more lines"] if len(diff) > _MOST_LINES else []
    return diff[:_MOST_LINES] + cut
