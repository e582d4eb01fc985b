"""Rules that look at several keys at once; each says what is wrong in the user's words."""

from __future__ import annotations

from collections.abc import Iterator

from llamarig.spec.rules import (
    accepted,
    beside,
    build,
    cache,
    controller,
    driver,
    files,
    fleet,
    locks,
    network,
    placement,
    process,
    reach,
    references,
    site,
    split,
    toolkit,
    unbuilt,
)
from llamarig.spec.rules.base import Broken, Rule, View

RULES: tuple[Rule, ...] = (
    *reach.RULES,
    *driver.RULES,
    *toolkit.RULES,
    *build.RULES,
    *files.RULES,
    *references.RULES,
    *placement.RULES,
    *split.RULES,
    *beside.RULES,
    *cache.RULES,
    *network.RULES,
    *process.RULES,
    *controller.RULES,
    *site.RULES,
    *fleet.RULES,
    *accepted.RULES,
    *unbuilt.RULES,
    *locks.RULES,
)


def broken(view: View) -> Iterator[Broken]:
    """Everything that the rules find, except what rests on a value that is wrong by itself."""
    for rule in RULES:
        for each in rule(view):
            if view.counts(each):
                yield each


__all__ = ["RULES", "Broken", "Rule", "View", "broken"]
