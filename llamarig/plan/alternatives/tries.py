"""Plans of changed specs, each made once."""

from __future__ import annotations

import json
from typing import Any

from llamarig.plan.alternatives.change import Change, Replan, Subject
from llamarig.plan.alternatives.legal import refused
from llamarig.plan.alternatives.search import Verdict
from llamarig.plan.load import Headers
from llamarig.plan.short import Place, memory_fits, others, shortage, used
from llamarig.plan.types import Plan
from llamarig.spec.host import HostSpec

_HOPELESS = 1e9
"""MiB that a plan is taken to be short of when something else than memory is wrong with it."""


Others = frozenset[tuple[str, str]]
"""Errors that have nothing to do with memory, by code and subject."""


def judged(spec: HostSpec, plan: Plan, before: Others = frozenset()) -> Verdict:
    """Whether a plan fits, and what its shortest place is short of; ``spec`` says who accepts a thin margin.

    Errors that were there ``before`` a change and that memory has nothing to do with are not held against it.
    """
    mib = max(shortage(spec, plan).values(), default=0.0)
    fits = memory_fits(plan) and others(plan) <= before
    return Verdict(fits, mib if fits or mib > 0 else _HOPELESS)


class Tries:
    """Tries changes on one subject and remembers their plans."""

    def __init__(self, subject: Subject, replan: Replan) -> None:
        self.subject = subject
        self.before = used(subject.plan)
        self.short = shortage(subject.spec, subject.plan)
        self._others = others(subject.plan)
        self._replan = replan
        self._plans: dict[str, Plan] = {}

    @property
    def count(self) -> int:
        """Plans that were made."""
        return len(self._plans)

    @property
    def short_mib(self) -> float:
        """What the shortest place is short of without any change."""
        return max(self.short.values(), default=0.0)

    def plan(self, changes: tuple[Change, ...]) -> Plan:
        """The plan with these changes made, one after the other."""
        key = json.dumps([(change.service, change.shown) for change in changes])
        if key not in self._plans:
            self._plans[key] = self._replan(*self._changed(changes))
        return self._plans[key]

    def _changed(self, changes: tuple[Change, ...]) -> tuple[HostSpec, Headers]:
        spec, headers = self.subject.spec, self.subject.headers
        for change in changes:
            spec, headers = change.apply(spec, headers)
        return spec, headers

    def refused(self, changes: tuple[Change, ...]) -> str | None:
        """Why ``check`` would refuse the spec with these changes made; None when it would not."""
        return refused(self.subject.spec, self._changed(changes)[0])

    def fits(self, changes: tuple[Change, ...]) -> bool:
        """Whether the whole host fits with these changes."""
        return self.verdict(changes).fits

    def verdict(self, changes: tuple[Change, ...]) -> Verdict:
        """Whether it fits, and by how much; a spec that would be refused does not."""
        found = judged(self.subject.spec, self.plan(changes), self._others)
        return Verdict(False, _HOPELESS) if found.fits and self.refused(changes) is not None else found

    def saved(self, changes: tuple[Change, ...]) -> dict[Place, float]:
        """MiB that each place holds less of with these changes."""
        after = used(self.plan(changes))
        return {place: before - after.get(place, 0.0) for place, before in self.before.items()}

    def sizes(self, planned: Plan) -> dict[str, Any]:
        """What an alternative saves and leaves free, as the JSON form has it."""
        after = used(planned)
        saved = {place: round(before - after.get(place, 0.0), 2) for place, before in self.before.items()}
        data: dict[str, Any] = {
            "saves-mib": {gpu: mib for (kind, gpu), mib in saved.items() if kind == "gpu" and mib},
            "free-mib": {device.gpu: round(device.free_mib, 2) for device in planned.devices if device.services},
        }
        if saved["ram", ""]:
            data["saves-ram-mib"] = saved["ram", ""]
        return data
