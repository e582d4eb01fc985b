"""The cards that a spec may name: memory, bandwidth, architecture, and what their generation needs."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Literal

from pydantic import Field

from llamarig.catalog.data import Entry, read

Flavour = Literal["open", "proprietary"]
"""Of the driver's kernel modules."""

Positive = Annotated[float, Field(gt=0.0)]


class Generation(Entry):
    """What all cards of one generation ask of driver and toolkit."""

    flavours: list[Flavour]
    first_toolkit: str | None = None
    """The first CUDA toolkit that has code for it."""
    last_toolkit: str | None = None
    first_driver: str | None = None
    source: str


class Card(Entry):
    """One card. Sizes are MiB, bandwidth is GB/s (10^9), power is W."""

    name: str
    """As nvidia-smi prints it."""
    generation: str
    architecture: str
    """As CMAKE_CUDA_ARCHITECTURES names it, without ``-real``: ``120a``, ``89``."""
    compute_capability: str
    total_mib: Positive
    """What nvidia-smi reports."""
    usable_mib: Positive | None = None
    """What a process may take at most, where it was measured."""
    bandwidth_gb_s: Positive
    fp32_tflops: Positive | None = None
    """Single precision at the vendor's boost clock, 10^12 operations a second."""
    power_w: Positive | None = None
    """The vendor's board power, which is the default limit."""
    power_min_w: Positive | None = None
    """The lowest and highest limit that the driver takes, where somebody stated it."""
    power_max_w: Positive | None = None
    ecc: bool
    """Whether its memory can correct errors."""
    ecc_on: bool | None = None
    """Whether ``total_mib`` was reported with that on; None: not known."""
    source: str


class _Gpus(Entry):
    generations: dict[str, Generation]
    cards: dict[str, Card]


@cache
def _gpus() -> _Gpus:
    return _Gpus.model_validate(read("gpus.yml"))


def cards() -> Mapping[str, Card]:
    """All cards by the name that a spec uses."""
    return _gpus().cards


def card(name: str) -> Card | None:
    """The card that a spec calls ``name``, or None when the catalog does not know it."""
    return _gpus().cards.get(name)


def near_cards(name: str) -> list[str]:
    """Names of cards that ``name`` may be meant to be, the likeliest first: what it begins with counts too."""
    close = difflib.get_close_matches(name, list(cards()), n=2)
    begun = [each for each in cards() if name.startswith(f"{each}-")]
    return list(dict.fromkeys([*sorted(begun, key=len, reverse=True), *close]))


def generation(of: Card) -> Generation:
    """What the card's generation asks of driver and toolkit."""
    return _gpus().generations[of.generation]


def generations() -> Mapping[str, Generation]:
    """All generations by name."""
    return _gpus().generations
