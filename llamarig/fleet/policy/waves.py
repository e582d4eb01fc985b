"""Hosts in waves: a canary, then the sizes that the policy names, spread over the values of a label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

from llamarig.errors import RigError
from llamarig.spec.natural import natural
from llamarig.spec.rollout import Rollout, WaveSize

if TYPE_CHECKING:
    from llamarig.spec.load import LoadedHost

CANARY = "canary"
_NAMED = 3
"""Hosts of each group that a message names."""


@dataclass(frozen=True, slots=True)
class Wave:
    """Hosts that are changed together."""

    name: str
    """``canary``, ``wave 1``, ``wave 2`` ..."""
    hosts: tuple[str, ...]


def waves(hosts: Mapping[str, Mapping[str, str]], policy: Rollout) -> tuple[Wave, ...]:
    """Every host in exactly one wave; the same hosts and policy always give the same waves.

    ``hosts`` holds each host's labels. A share is one of the hosts beyond the canary and is rounded up, so that no host
    is left over; the last size repeats. Where ``by`` keeps hosts back, waves are smaller and there are more of them.
    """
    line = _Line(hosts, policy.by)
    marked = {name for name, labels in hosts.items() if policy.canary_labels.items() <= labels.items()}
    found = [Wave(CANARY, line.take(policy.canary, marked))] if policy.canary and hosts else []
    sizes = [_size(each, line.left) for each in policy.waves]
    while line.left:
        number = len(found) - (1 if policy.canary else 0)
        found.append(Wave(f"wave {number + 1}", line.take(sizes[min(number, len(sizes) - 1)])))
    return tuple(found)


def policy_of(hosts: Iterable[LoadedHost]) -> Rollout:
    """The policy that the fleet files give all of these hosts.

    Raises :class:`RigError` when they do not agree: one rollout has one budget and one order.
    """
    said: dict[str, tuple[Rollout, list[str]]] = {}
    for host in hosts:
        policy = host.fleet.rollout or Rollout()
        said.setdefault(policy.model_dump_json(), (policy, []))[1].append(host.host)
    if len(said) > 1:
        groups = [_some(names) for _, names in said.values()]
        raise RigError(
            what="the fleet files give these hosts different policies for a rollout",
            why="; ".join(groups),
            fix="name hosts of one of them, or write one `rollout` section into the uppermost fleet.yml",
        )
    return next((policy for policy, _ in said.values()), Rollout())


def _some(names: list[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


class _Line:
    """Hosts that wait for their wave."""

    def __init__(self, hosts: Mapping[str, Mapping[str, str]], by: str | None) -> None:
        self._value = {name: labels.get(by) if by is not None else None for name, labels in hosts.items()}
        self._all = Counter(self._value.values())
        self._hosts = self._interleaved()

    @property
    def left(self) -> int:
        """How many wait."""
        return len(self._hosts)

    def take(self, size: int, before: Set[str] = frozenset()) -> tuple[str, ...]:
        """The next hosts, at most half of those that share a value; those of ``before`` come first."""
        taken: list[str] = []
        of: Counter[str | None] = Counter()
        for name in sorted(self._hosts, key=lambda name: name not in before):
            value = self._value[name]
            if len(taken) == size:
                break
            if value is None or of[value] < max(1, self._all[value] // 2):
                taken.append(name)
                of[value] += 1
        gone = set(taken)
        self._hosts = [name for name in self._hosts if name not in gone]
        return tuple(taken)

    def _interleaved(self) -> list[str]:
        """By name, where numbers count as numbers; with a label one of each value, then the next of each."""
        rank: Counter[str | None] = Counter()
        places = {}
        for name in sorted(self._value, key=natural):
            value = self._value[name]
            places[name] = (rank[value] if value is not None else 0, value or "", natural(name))
            rank[value] += 1
        return sorted(places, key=places.__getitem__)


def _size(size: WaveSize, rest: int) -> int:
    if isinstance(size, int):
        return size
    return max(1, -(-rest * int(size.removesuffix("%")) // 100))
