"""One host's drift: each difference with its time, and the record that it is held against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from llamarig.compare import Action
from llamarig.compare.drift import drift_json
from llamarig.compare.state import record_of
from llamarig.compare.view import view_of
from llamarig.errors import RigError
from llamarig.fleet.drift.since import Since, since
from llamarig.render.wanted import Wanted


@dataclass(frozen=True)
class Difference:
    """One thing that is not as the spec says."""

    action: Action
    since: Since

    @property
    def same(self) -> tuple[str, ...]:
        """What two hosts have in common when they differ in the same way."""
        each = self.action
        return (each.kind, each.subject, each.reason, each.expected, each.observed)


@dataclass(frozen=True)
class HostDrift:
    """A host that was looked at, or the error that kept it from being."""

    host: str
    differences: tuple[Difference, ...] = ()
    record: Mapping[str, Any] | None = None
    error: RigError | None = None

    def to_json(self) -> dict[str, Any]:
        """The documented form of ``llamarig drift --json`` for one host."""
        if self.error is not None:
            error = self.error
            told = {"what": error.what, "where": error.where, "why": error.why, "fix": error.fix}
            return {"host": self.host, "drift": [], "error": told}
        document = drift_json(self.host, [each.action for each in self.differences])
        for entry, each in zip(document["drift"], self.differences, strict=True):
            entry["since"] = each.since.to_json()
        return document | {"record": dict(self.record or {})}


def host_drift(wanted: Wanted, observed: Mapping[str, Any], actions: Sequence[Action]) -> HostDrift:
    """What differs on a host, from its wanted state, its observation and their comparison.

    Raises :class:`~llamarig.errors.RigError` when ``observed`` is no observation.
    """
    view = view_of(wanted, observed)
    found = tuple(Difference(action, since(view, action)) for action in actions)
    return HostDrift(wanted.host, found, record_of(view))
