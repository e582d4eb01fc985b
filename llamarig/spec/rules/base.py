"""What a rule sees of a spec, and what it says of it."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from llamarig.spec.host import HostSpec
from llamarig.spec.tree import Loc


@dataclass(frozen=True, slots=True)
class Broken:
    """A rule that a spec breaks, at the value that the user should look at."""

    loc: Loc
    message: str
    fix: str
    rests_on: tuple[Loc, ...] = ()
    """Other values without which this would not be said."""
    warning: bool = False
    note: bool = False
    """Nothing is wrong: what the user asked for is shown, with the reason that they gave."""

    @property
    def severity(self) -> Literal["error", "warning", "note"]:
        """How loud it is said."""
        return "note" if self.note else "warning" if self.warning else "error"


@dataclass(frozen=True, slots=True)
class View:
    """A spec as the rules see it.

    ``document`` is the merged YAML as plain data: it also holds what is wrong by
    itself, so that a service may name a card whose own entry has an error.
    """

    spec: HostSpec
    document: dict[str, Any]
    root: Path
    tainted: frozenset[Loc] = field(default=frozenset())

    def names(self, section: str) -> list[str]:
        """The names that the user gave in a section, those with errors included."""
        found = self.document.get(section)
        return [str(name) for name in found] if isinstance(found, dict) else []

    def counts(self, broken: Broken) -> bool:
        """Whether a finding rests only on values that are legal by themselves, down to the last one."""
        for place in self.tainted:
            if any(loc[: len(place)] == place for loc in (broken.loc, *broken.rests_on)):
                return False
            if any(place[: len(loc)] == loc for loc in broken.rests_on):
                return False
        return True


Rule = Callable[[View], Iterator[Broken]]


def near(name: str, known: list[str]) -> str:
    """A fix that names what there is."""
    close = difflib.get_close_matches(name, known, n=1)
    if close:
        return f"did you mean `{close[0]}`?"
    return f"there is {', '.join(f'`{each}`' for each in known[:6])}" if known else "there is none"
