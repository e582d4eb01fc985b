"""Many hosts at once: how many are as specified, and what several have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llamarig.fleet.drift.host import Difference, HostDrift
from llamarig.fleet.drift.since import Since

LEAST = 2
"""Hosts from which on a difference is told once for all of them."""
MOST = 200
"""Differences of one host that a terminal or a page shows."""


@dataclass(frozen=True)
class Counts:
    """Hosts by what is known of them."""

    hosts: int
    as_specified: int
    differ: int
    not_looked_at: int

    def to_json(self) -> dict[str, int]:
        """The documented form."""
        return {
            "hosts": self.hosts,
            "as-specified": self.as_specified,
            "differ": self.differ,
            "not-looked-at": self.not_looked_at,
        }


@dataclass(frozen=True)
class Shared:
    """A difference that several hosts have."""

    difference: Difference
    """As the first of them has it."""
    hosts: tuple[str, ...]
    since: Since
    """The earliest of all beginnings and the latest of all ends."""


def counts(hosts: Sequence[HostDrift]) -> Counts:
    """The sums of a fleet."""
    away = sum(host.error is not None for host in hosts)
    differ = sum(host.error is None and bool(host.differences) for host in hosts)
    return Counts(len(hosts), len(hosts) - away - differ, differ, away)


def shared(hosts: Sequence[HostDrift], least: int = LEAST) -> list[Shared]:
    """Differences that at least ``least`` hosts have in the same words, those of most hosts first."""
    found: dict[tuple[str, ...], list[tuple[str, Difference]]] = {}
    for host in hosts:
        for each in host.differences:
            found.setdefault(each.same, []).append((host.host, each))
    groups = [
        Shared(entries[0][1], tuple(host for host, _ in entries), _span([each.since for _, each in entries]))
        for entries in found.values()
        if len(entries) >= least
    ]
    return sorted(groups, key=lambda group: -len(group.hosts))


def own(host: HostDrift, groups: Sequence[Shared]) -> list[Difference]:
    """The differences of a host that are not told with others."""
    told = {group.difference.same for group in groups}
    return [each for each in host.differences if each.same not in told]


def _span(each: Sequence[Since]) -> Since:
    causes = {one.cause for one in each}
    after = [one.after for one in each if one.after]
    before = [one.before for one in each if one.before]
    whole = len(after) == len(each), len(before) == len(each)
    return Since(
        min(after) if whole[0] else None,
        max(before) if whole[1] else None,
        each[0].by if whole[1] else "",
        causes.pop() if len(causes) == 1 else "unknown",
    )
