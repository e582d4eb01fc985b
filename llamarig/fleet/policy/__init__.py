"""What a rollout may do next, decided without touching anything: waves, windows, hosts in use, the budget."""

from llamarig.fleet.policy.budget import Budget, budget, counts_as_failure
from llamarig.fleet.policy.busy import Rules, Use, busy, rules_of
from llamarig.fleet.policy.waves import Wave, policy_of, waves
from llamarig.fleet.policy.window import in_window, next_opening

__all__ = [
    "Budget",
    "Rules",
    "Use",
    "Wave",
    "budget",
    "busy",
    "counts_as_failure",
    "in_window",
    "next_opening",
    "policy_of",
    "rules_of",
    "waves",
]
