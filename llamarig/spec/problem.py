"""What is wrong with a spec, with the place in the file that the user has to touch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from llamarig.errors import RigError

_SHOWN = 60
_MESSAGE = 600


def shown(text: str) -> str:
    """A piece of the user's text, short enough for a message."""
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def printable(text: str) -> str:
    """Text that cannot steer a terminal: what is not printable is spelled out, and it ends somewhere."""
    if not text.isprintable():
        text = "".join(ch if ch.isprintable() else ch.encode("unicode_escape").decode() for ch in text)
    return text if len(text) <= _MESSAGE else text[: _MESSAGE - 3] + "..."


@dataclass(frozen=True, slots=True)
class SpecProblem:
    """One error or warning: file, line (from 1), what is wrong, and how to mend it."""

    path: Path
    line: int
    message: str
    fix: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", printable(self.message))
        object.__setattr__(self, "fix", printable(self.fix))

    def to_json(self) -> dict[str, str | int]:
        """The documented form of ``llamarig check --json``."""
        return {"path": str(self.path), "line": self.line, "message": self.message, "fix": self.fix}

    def to_error(self) -> RigError:
        """The same as the error type that every command prints."""
        return RigError(what=self.message, where=f"{self.path}:{self.line}", fix=self.fix)


def combined(problems: Sequence[SpecProblem], path: Path) -> RigError:
    """All that is wrong with the spec at ``path`` as one error, for what tells one error a host."""
    each = list(dict.fromkeys(problems))
    if len(each) == 1:
        return each[0].to_error()
    told = "\n".join(f"{problem.path}:{problem.line}: {problem.message}" for problem in each)
    what = f"the spec has {len(each)} errors" if each else "the spec has errors"
    return RigError(what=what, where=str(path), why=told, fix="`llamarig check` shows them with a fix each")
