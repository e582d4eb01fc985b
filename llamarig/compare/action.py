"""A frozen decision: what is to be done to which thing, and why."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal, get_args

Kind = Literal[
    "package",
    "user",
    "directory",
    "driver",
    "toolkit",
    "release",
    "model",
    "credential",
    "file",
    "switch",
    "service",
    "port",
    "power",
    "record",
]
"""In the order in which they are carried out. ``file`` also reloads systemd and restarts
what reads it; ``service`` starts or restarts one that no other action restarts."""

ORDER: tuple[str, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class Action:
    """One thing to do. ``expected`` and ``observed`` are short, printable and without secrets."""

    kind: Kind
    subject: str
    reason: str
    expected: str = ""
    observed: str = ""
    restarts: tuple[str, ...] = ()
    """Services that this action restarts."""

    def to_json(self) -> dict[str, object]:
        """The documented form, plain data."""
        return dict(asdict(self), restarts=list(self.restarts))
