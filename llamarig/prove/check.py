"""What a check is, and how one that could not run names the one that failed before it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar


@dataclass(frozen=True, slots=True)
class Check:
    """One question about a host and its answer.

    ``name`` is ``<service>/<what>`` or ``host/<what>``. ``detail`` is printable text, safe for a terminal.
    ``blocked_by`` names the check whose failure kept this one from running; such a check is not ``ok`` either.
    """

    name: str
    ok: bool
    detail: str
    blocked_by: str | None = None

    def to_json(self) -> dict[str, object]:
        """The documented form (DESIGN, Commands)."""
        return {"name": self.name, "ok": self.ok, "detail": self.detail, "blocked-by": self.blocked_by}


Outcome = tuple[bool, str]
"""Whether it holds, and the figures or words that show it."""

View = TypeVar("View")


@dataclass(frozen=True, slots=True)
class Rule(Generic[View]):
    """A check to be made on a ``View``, after the checks that it ``needs`` and only ``when`` it applies."""

    name: str
    judge: Callable[[View], Outcome]
    needs: tuple[str, ...] = ()
    when: Callable[[View], bool] | None = None
    enough: Callable[[View], bool] | None = None
    """What the checks that need this one really stand on; where it is true, a failure does not block them."""


def run_rules(subject: str, view: View, rules: Sequence[Rule[View]]) -> list[Check]:
    """Apply the rules in order; what cannot be asked after a failed one is reported as blocked by the first cause."""
    done: dict[str, Check] = {}
    usable: set[str] = set()
    for rule in rules:
        if rule.when is not None and not rule.when(view):
            continue
        name = f"{subject}/{rule.name}"
        failed = next((done[need] for need in rule.needs if need in done and need not in usable), None)
        if failed is not None:
            cause = failed.blocked_by or failed.name
            done[rule.name] = Check(name, False, f"not checked, because {cause} failed", cause)
        else:
            ok, detail = rule.judge(view)
            done[rule.name] = Check(name, ok, detail)
            if ok or (rule.enough is not None and rule.enough(view)):
                usable.add(rule.name)
    return list(done.values())
