"""How much of a card a plan may use."""

from __future__ import annotations

from dataclasses import dataclass

from llamarig.catalog import gpus
from llamarig.spec.hardware import Gpu

DRIVER_SHARE = 0.02
"""Of the total, where nobody measured what the driver keeps: 1.5 % and 2.0 % were measured on two cards."""

DISPLAY_RESERVE_MIB = 512.0
"""For a display and its compositor, unless the spec says how much."""


@dataclass(frozen=True, slots=True)
class Room:
    """MiB of a card."""

    total_mib: float
    usable_mib: float
    measured: bool
    """Whether the usable part was measured on such a card."""


def room_of(gpu: Gpu) -> Room | None:
    """The card's room; None when the catalog does not know it.

    usable = total - what the driver keeps - the spec's reserve, or the display's.
    """
    card = gpus.card(gpu.model)
    if card is None:
        return None
    measured = card.usable_mib is not None
    usable = card.usable_mib if card.usable_mib is not None else card.total_mib * (1 - DRIVER_SHARE)
    reserve = gpu.reserve_mib if gpu.reserve_mib is not None else (DISPLAY_RESERVE_MIB if gpu.display else 0.0)
    return Room(float(card.total_mib), float(usable) - reserve, measured)
