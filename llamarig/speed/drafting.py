"""How many tokens a pass yields when drafts are checked in it."""

from __future__ import annotations

from typing import Final

FIRST: Final = 0.883
"""Share of first drafted tokens that are kept when nothing else is known."""

KEPT: Final = 0.785
"""Each further position is kept this often as the one before it. Both figures: the marginal shares per position that
follow from the aggregate acceptance at n-max 1 to 6 of a 27B model with its own head, code and prose mixed
(github.com/sudoingX/qwen38-mtp, sweeps/rtx-5090.md, power-cap study: 0.883 0.800 0.73 0.65 0.59 0.535)."""


def positions(n_max: int, first: float = FIRST, kept: float = KEPT) -> tuple[float, ...]:
    """The share of passes in which each drafted position is kept, for drafts of ``n_max`` tokens."""
    return tuple(min(first * kept**number, 1.0) for number in range(n_max))


def acceptance(n_max: int, first: float = FIRST, kept: float = KEPT) -> float:
    """Kept / drafted over all positions, as the server counts it; 0 when nothing drafts."""
    return sum(positions(n_max, first, kept)) / n_max if n_max else 0.0


def first_of(measured: float, n_max: int, kept: float = KEPT) -> float:
    """The first position's share that makes the aggregate acceptance at ``n_max`` the measured one."""
    return min(measured / acceptance(n_max, 1.0, kept), 1.0)


def tokens_per_pass(n_max: int, measured: float | None = None) -> float:
    """Tokens that a pass yields on average: its own, and the drafted ones that are kept.

    ``measured`` is the aggregate acceptance at this very ``n_max``; without it the usual shares are taken.
    """
    return 1.0 + n_max * (acceptance(n_max) if measured is None else measured)
