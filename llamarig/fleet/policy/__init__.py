"""What a rollout may do next, decided without touching anything: waves, windows, hosts in use."""

from llamarig.compare.window import in_window, next_opening
from llamarig.fleet.policy.busy import Rules, Use, busy, rules_of
from llamarig.fleet.policy.waves import Wave, policy_of, waves

__all__ = [
    "Rules",
    "Use",
    "Wave",
    "busy",
    "in_window",
    "next_opening",
    "policy_of",
    "rules_of",
    "waves",
]
