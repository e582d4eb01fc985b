"""How each figure of a plan is known: what is fitted or assumed says so wherever it is shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from llamarig.memory import TERMS
from llamarig.plan import Plan

KEYS = dict(zip(TERMS, "WKRwkCcPp", strict=True))
"""The letter of each term in a bar and beside its figure."""

UNKNOWN_SIZES = {
    "header-unknown": "the model's header",
    "header-undecided": "the model's exact header",
    "projector-size-unknown": "the projector's size",
}
"""Findings after which a plan does not say whether the host fits, and what is missing then."""

PROCESS_PARTS = {"base": "base", "checkpoints": "context checkpoints", "prompt-cache": "prompt cache"}
"""What the process term in RAM is made of, in words."""


def in_order(components: Mapping[str, float]) -> dict[str, float]:
    """The terms as bars and tables show them, whatever order they were added in."""
    return {term: components[term] for term in sorted(components, key=list(KEYS).index)}


def process_parts(services: Iterable[str], detail: Mapping[str, Mapping[str, float]]) -> tuple[str, ...]:
    """The parts of the process term in RAM that any of ``services`` has; nothing when it has one part alone."""
    told = [detail.get(name, {}) for name in services]
    held = tuple(part for part in PROCESS_PARTS if any(parts.get(part) for parts in told))
    return held if held[1:] else ()


def bracketed(words: str) -> str:
    """The words behind a blank and in brackets; nothing when there are none."""
    return f" ({words})" if words else ""


class Basis:
    """Words for the figures of one plan that do not follow from the header and the settings alone; else empty."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._found = {(finding.code, finding.subject) for finding in plan.findings}

    def usable(self, gpu: str) -> str:
        """Of a card's usable memory."""
        return "assumed" if ("usable-assumed", gpu) in self._found else ""

    def undecided(self, gpu: str) -> str:
        """Of a card of which only the exact header says whether it holds all."""
        return " with the composed header" if ("header-undecided", gpu) in self._found else ""

    def term(self, term: str, services: tuple[str, ...], gpu: str | None = None) -> str:
        """Of a term that ``services`` have on the card ``gpu``, or in RAM."""
        if term == "process" and self._any("process-measured", services):
            return "measured"
        if term == "process":
            return "assumed" if gpu is None else "fitted"
        if term == "projector":
            return "fitted"
        told = {"unknown-architecture": "guessed"}
        if term == "weights":
            told |= {"header-unknown": "file size", "header-composed": "composed"}
        elif "compute" in term:
            told |= {"compute-approximate": "approximate"}
        return next((words for code, words in told.items() if self._any(code, services)), "")

    def _any(self, code: str, subjects: tuple[str, ...]) -> bool:
        return any((code, subject) in self._found for subject in subjects)

    @property
    def composed(self) -> bool:
        """Whether a model's header was composed."""
        return any(code == "header-composed" for code, _ in self._found)

    def missing(self) -> str:
        """What must be known before the plan says more than a lower bound; empty when nothing is."""
        codes = {code for code, _ in self._found}
        return next((words for code, words in UNKNOWN_SIZES.items() if code in codes), "")
