"""How a plain scalar is read: YAML 1.2's core schema, so that ``on``, ``no`` and ``12:30`` stay text."""

from __future__ import annotations

import re

from llamarig.spec.tree import Scalar

_INT = re.compile(r"[-+]?[0-9]{1,18}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]{1,40}|[0-9]{1,18}(\.[0-9]{0,40})?)([eE][-+]?[0-9]{1,2})?")
_NUMERIC = frozenset("+-.0123456789")
_WORDS: dict[str, Scalar] = {
    "": None,
    "~": None,
    "null": None,
    "Null": None,
    "NULL": None,
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}


def resolve(text: str) -> Scalar:
    """The value of a scalar without quotes.

    Numbers that no key could hold (more than 18 digits, infinities) stay text
    and are refused as such by the key's own type.
    """
    if text[:1] in _NUMERIC:
        if _INT.fullmatch(text):
            return int(text)
        if _FLOAT.fullmatch(text):
            return float(text)
    return _WORDS.get(text, text)
