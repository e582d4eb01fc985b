"""The budget of failures of a whole rollout: which hosts count against it, and whether it is spent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from llamarig.spec.rollout import Rollout

_BAD = frozenset({"failed", "rolled-back"})


@dataclass(frozen=True, slots=True)
class Budget:
    """Failed hosts that are allowed, and those that there are, in all waves together."""

    allowed: int
    used: int

    @property
    def spent(self) -> bool:
        """Whether the rollout stops here: more hosts failed than it may have."""
        return self.used > self.allowed

    def __str__(self) -> str:
        return f"{self.used} failed, {self.allowed} allowed"


def counts_as_failure(phase: str, policy: Rollout) -> bool:
    """Whether a host that ended in ``phase`` counts: one that failed does, whether or not it was taken back; one that
    does not answer does where the policy says so; one that was deferred never does."""
    return phase in _BAD or (phase == "unreachable" and policy.unreachable == "fail")


def budget(phases: Iterable[str], policy: Rollout) -> Budget:
    """The budget after hosts came to ``phases``; those of the whole rollout, not of a wave."""
    return Budget(policy.failures, sum(counts_as_failure(phase, policy) for phase in phases))
