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
    (
        "did not find expected node content",
        "a `[` or `{` is opened and never closed, or a value is missing between commas",
        "close the bracket, or write the missing value",
    ),
    (
        "block sequence entries are not allowed",
        "a `- ` stands where no list can begin",
        "begin the list on the line below its key",
    ),
    (
        "mapping keys are not allowed",
        "a `?` or a key stands where no mapping can begin",
        "write `key: value` on a line of its own",
    ),
    ("tab character", "a tab is used for indentation", "indent with spaces only"),
    ("document start", "text stands in front of or behind the document", "keep one mapping of keys in the file"),
    ("document indicator", "a quote is opened and not closed before `---` or `...`", "close the quote"),
    ("escape code", "a backslash in double quotes begins a wrong escape", "use single quotes"),
    ("hexdecimal number", "a backslash in double quotes begins a wrong escape", "use single quotes"),
    (
        "alphabetic or numeric",
        "a `&` or `*` begins an anchor here, and has no name",
        "put text that begins with & or * in quotes",
    ),
    ("tag", "a `!` begins a YAML tag here", "put text that begins with ! in quotes"),
    ("directive", "a line begins with %", "remove the line, or put its text in quotes"),
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
