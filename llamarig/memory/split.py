"""Bytes by place: on each card of a server, or in the host's RAM."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import zip_longest

Place = int | None
"""Number of a card in the order of ``--device``; None for the host's RAM."""


@dataclass(frozen=True, slots=True)
class Split:
    """Bytes on each card, in the order of ``--device``, and in host RAM."""

    cards: tuple[int, ...] = ()
    """As long as the last card that holds anything; see :meth:`on`."""
    host: int = 0

    @property
    def device(self) -> int:
        """Bytes on all cards."""
        return sum(self.cards)

    def on(self, card: int) -> int:
        """Bytes on one card."""
        return self.cards[card] if card < len(self.cards) else 0

    def plus(self, size: int, place: Place = None) -> Split:
        """The same with ``size`` more bytes at one place."""
        return self + (Split(host=size) if place is None else Split((0,) * place + (size,)))

    def __add__(self, other: Split) -> Split:
        """Both together, place by place."""
        cards = tuple(a + b for a, b in zip_longest(self.cards, other.cards, fillvalue=0))
        return Split(cards, self.host + other.host)


NOTHING = Split()


def total(splits: Iterable[Split]) -> Split:
    """All of them together."""
    found = NOTHING
    for split in splits:
        found += split
    return found
