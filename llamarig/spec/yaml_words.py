"""YAML's own complaints in the words of somebody who writes a spec."""

from __future__ import annotations

import yaml

_WORDS: tuple[tuple[str, str, str], ...] = (
    (
        "cannot start any token",
        "a tab or a stray character stands where a value or spaces are expected",
        "indent with spaces only; put text that begins with @, ` or % in quotes",
    ),
    (
        "mapping values are not allowed",
        "a second `: ` stands on a line that already has one, or the line is indented wrongly",
        'put text that contains `: ` in quotes, for example reason: "thin: measured"',
    ),
    (
        "did not find expected key",
        "the lines here do not stand under each other, or a quote or bracket above is not closed",
        "indent the keys of one block by the same number of spaces",
    ),
    (
        "did not find expected '-' indicator",
        "the items of this list do not stand under each other",
        "begin every item with `- ` at the same indentation",
    ),
    (
        "could not find expected ':'",
        "a key without a `:` behind it",
        "write `key: value`, with a space behind the colon",
    ),
    ("unexpected end of stream", "a quote is opened and never closed", "close the quote"),
    (
        "did not find expected ',' or",
        "a `[` or `{` is opened and never closed, or a comma is missing",
        "close the bracket, or put a comma between its values",
    ),
    ("nesting depth", "values are nested too deep", "check the brackets and the indentation"),
    ("incompatible YAML document", "a %YAML version that is not 1.x", "remove the %YAML line"),
    ("unknown escape character", "a backslash in double quotes begins no known escape", "use single quotes"),
    ("found undefined alias", "an alias names no anchor above it", "write the value itself"),
    ("duplicate anchor", "an anchor is defined twice", "use another name"),
)


def syntax_words(error: yaml.YAMLError) -> tuple[int, str, str]:
    """Line (from 1), message and fix for an error of the YAML parser."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    line = mark.line + 1 if mark is not None else 1
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "it cannot be parsed"
    if isinstance(error, yaml.reader.ReaderError):
        return line, "the file holds a control character that YAML does not allow", "save it as plain UTF-8 text"
    for part, message, fix in _WORDS:
        if part in str(problem):
            return line, message, fix
    return (
        line,
        f"this is not valid YAML: {problem}",
        "compare the line with its neighbours: indentation, quotes, colons",
    )
