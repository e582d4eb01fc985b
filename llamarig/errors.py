"""The one error type that reaches a user: what, where, why, what to do.

Every problem that a user can cause or mend is a :class:`RigError`. A traceback
on a user's terminal is a defect of llamarig.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path


class ExitCode(IntEnum):
    """Exit statuses of every command; mixed outcomes end with the highest."""

    OK = 0
    """Done, nothing to complain about."""
    FINDING = 1
    """It does not fit, drift was found, or a check failed."""
    BAD_INPUT = 2
    """The input is wrong; nothing was touched."""
    HOST_FAILED = 3
    """A host failed or was rolled back."""


@dataclass(unsafe_hash=True)  # not frozen: contextlib writes __traceback__ into what passes through it
class RigError(Exception):
    """A problem in the user's terms.

    ``what`` says what went wrong in one line, ``where`` names the file and
    line, host or URL, ``why`` the cause (often the words of the tool beneath,
    verbatim), ``fix`` what to do next. Empty parts are left out.
    """

    what: str
    where: str = ""
    why: str = ""
    fix: str = ""
    code: ExitCode = ExitCode.BAD_INPUT

    def __reduce__(self) -> tuple[type[RigError], tuple[str, str, str, str, ExitCode]]:
        """Exceptions are copied between processes by their arguments, of which a dataclass leaves none."""
        return RigError, (self.what, self.where, self.why, self.fix, self.code)

    def __str__(self) -> str:
        lines = [self.what if not self.where else f"{self.where}: {self.what}"]
        if self.why:
            lines.append(f"  why: {self.why}")
        if self.fix:
            lines.append(f"  fix: {self.fix}")
        return "\n".join(lines)


class RigErrors(Exception):  # noqa: N818 - the plural of RigError
    """Several problems found in one run, in the order in which they were found."""

    def __init__(self, errors: list[RigError]) -> None:
        super().__init__("\n".join(str(error) for error in errors))
        self.errors = errors

    @property
    def code(self) -> ExitCode:
        """The highest exit code among the errors."""
        return max((error.code for error in self.errors), default=ExitCode.BAD_INPUT)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Give an OSError that names no file the ``path`` that is written or read: a write and an fsync name none."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error
