"""What is not pinned yet: legal to plan with, refused by apply."""

from __future__ import annotations

from collections.abc import Iterator

from llamarig.spec.rules.base import Broken, View
from llamarig.spec.unlocked import unlocked_places


def unlocked(view: View) -> Iterator[Broken]:
    """Each place that says `unlocked`."""
    for loc in unlocked_places(view.spec):
        yield Broken(
            loc,
            f"`{loc[-1]}` is not pinned yet, so apply would refuse",
            "run `llamarig lock` and look at what it fills in",
            warning=True,
        )


RULES = (unlocked,)
