"""How the check tells that it cannot go on."""

from __future__ import annotations

import sys


class CannotAskError(Exception):
    """The machine lacks something that the questions need; ``fix`` says what to do."""

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(what)
        self.what, self.fix = what, fix


def say(text: str) -> None:
    """A line of progress; standard output is for the report."""
    sys.stderr.write(f"gpu-check: {text}\n")
    sys.stderr.flush()
