"""Which layers have to be simulated, and whether they were enough.

A layer leaves nothing behind but its result, so layers that repeat a pattern soon find the same free blocks as the ones
before them, and from then on everything repeats. Where it does, what follows is left out.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

_LONGEST: Final = 16
"""Layers of the longest pattern that is looked for."""

_FIRST_TURNS: Final = 2
"""Turns of a pattern that are simulated at first, beside an odd number that is over."""

_FEWEST: Final = 5
"""Layers that are simulated of any pattern: fewer seldom find a state again."""

_WORTH_TRYING: Final = 0.75
"""Part of all layers from which on all are simulated: a try that fails would cost more than the rest."""

State = Hashable
"""What the allocator holds where a layer begins: free blocks, and the places of what is alive."""


@dataclass(slots=True)
class _Stretch:
    """Layers in a row that repeat a pattern."""

    start: int
    end: int
    period: int
    kept: int = 0
    """Layers of it that are simulated; as many as it has when it cannot be shortened."""

    def keep(self, least: int) -> None:
        """Simulate ``least`` layers or some more: what is left out is an even number of turns."""
        length, twice = self.end - self.start, 2 * self.period
        self.kept = length - max(length - least, 0) // twice * twice

    @property
    def left_out(self) -> int:
        return self.end - self.start - self.kept

    def has_settled(self, states: Mapping[int, State]) -> bool:
        """Whether one of the simulated layers began as one did some turns before it.

        They have to fit into what is left out a whole number of times, so that what comes after finds that state, too.
        """
        end = self.start + self.kept
        return not self.left_out or any(
            states.get(number) is not None and states.get(number) == states.get(number - turns * self.period)
            for turns in range(1, self.kept // self.period + 1)
            if self.left_out % (turns * self.period) == 0
            for number in range(self.start + turns * self.period, end)
        )


class Selection:
    """The layers of a model that are simulated."""

    def __init__(self, kinds: Sequence[Hashable]) -> None:
        self._count = len(kinds)
        self._stretches = _stretches(kinds)
        for stretch in self._stretches:
            stretch.keep(max(_FIRST_TURNS * stretch.period + 1, _FEWEST))
        self._keep_all_of_most()

    def _keep_all_of_most(self) -> None:
        left_out = sum(stretch.left_out for stretch in self._stretches)
        if self._count - left_out > _WORTH_TRYING * self._count:
            for stretch in self._stretches:
                stretch.keep(self._count)

    @property
    def whole(self) -> bool:
        """Whether all are simulated, so that no state decides anything."""
        return not any(stretch.left_out for stretch in self._stretches)

    @property
    def layers(self) -> list[int]:
        """Their numbers, ascending."""
        left_out: set[int] = set()
        for stretch in self._stretches:
            first = stretch.start + stretch.kept
            left_out.update(range(first, first + stretch.left_out))
        return [number for number in range(self._count) if number not in left_out]

    def has_settled(self, states: Mapping[int, State]) -> bool:
        """Whether they are enough, by the state in which each layer began; else more are selected."""
        settled = True
        for stretch in self._stretches:
            if not stretch.has_settled(states):
                settled = False
                stretch.keep(2 * stretch.kept)
        self._keep_all_of_most()
        return settled


def _stretches(kinds: Sequence[Hashable]) -> list[_Stretch]:
    """Cut the layers into stretches that repeat a pattern at least three times; single layers belong to none."""
    names: dict[Hashable, int] = {}
    numbers = [names.setdefault(kind, len(names)) for kind in kinds]
    found: list[_Stretch] = []
    start, count = 0, len(numbers)
    while start < count:
        best: _Stretch | None = None
        for period in range(1, min(_LONGEST, (count - start) // 3) + 1):
            end = start + period
            while end < count and numbers[end] == numbers[end - period]:
                end += 1
            # The last layer is another one: it picks the rows that go on.
            end = min(end, count - 1)
            if end - start >= 3 * period and (best is None or end > best.end):
                best = _Stretch(start, end, period)
        if best is None:
            start += 1
        else:
            found.append(best)
            start = best.end
    return found
