"""What is wrong with a spec, with the place in the file that the user has to touch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from llamarig.errors import RigError


@dataclass(frozen=True, slots=True)
class SpecProblem:
    """One error or warning: file, line (from 1), what is wrong, and how to mend it."""

    path: Path
    line: int
    message: str
    fix: str = ""

    def to_json(self) -> dict[str, str | int]:
        """The documented form of ``llamarig check --json``."""
        return {"path": str(self.path), "line": self.line, "message": self.message, "fix": self.fix}

    def to_error(self) -> RigError:
        """The same as the error type that every command prints."""
        return RigError(what=self.message, where=f"{self.path}:{self.line}", fix=self.fix)
