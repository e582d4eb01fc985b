"""What is found, and how it is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "note"]
ORDER: tuple[Severity, ...] = ("error", "warning", "note")


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One cause of trouble.

    ``evidence`` is what the machine said, printable and cut; ``cause`` what it comes from; ``fix`` what to do.
    """

    code: str
    severity: Severity
    what: str
    cause: str
    fix: str
    evidence: str = ""

    def to_json(self) -> dict[str, str]:
        """The documented form."""
        return {
            "code": self.code,
            "severity": self.severity,
            "what": self.what,
            "evidence": self.evidence,
            "cause": self.cause,
            "fix": self.fix,
        }
