"""What is not pinned yet: legal to plan with, refused by apply."""

from __future__ import annotations

from collections.abc import Iterator

from llamarig.spec.rules.base import Broken, View
from llamarig.spec.tree import Loc, dotted
from llamarig.spec.unlocked import unlocked_places


def unlocked(view: View) -> Iterator[Broken]:
    """Each part of a spec that says `unlocked`, once; the entries of a list together."""
    parts: dict[Loc, list[Loc]] = {}
    for loc in unlocked_places(view.spec):
        part = loc[:-2] if isinstance(loc[-2], int) else loc[:-1]
        parts.setdefault(part, []).append(loc)
    for part, places in parts.items():
        keys = ", ".join(f"`{key}`" for key in dict.fromkeys(loc[-1] for loc in places))
        entries = {loc[len(part)] for loc in places if len(loc) > len(part) + 1}
        of = f" of {len(entries)} entries" if len(entries) > 1 else ""
        yield Broken(
            places[0],
            f"{dotted(part)}: {keys}{of} {'are' if len(places) > 1 else 'is'} not pinned yet, so apply would refuse",
            "run `llamarig lock`, and look at what it fills in",
            warning=True,
        )


RULES = (unlocked,)
