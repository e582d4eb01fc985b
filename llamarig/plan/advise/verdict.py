"""What a file on a card is worth, and the thresholds that say so."""

from __future__ import annotations

from typing import Literal, get_args

from llamarig.plan.quality import LEAST_BITS, TARGET_BITS

Verdict = Literal[
    "recommended",
    "fits",
    "usable",
    "narrow-cache",
    "layers-in-ram",
    "not-recommended",
    "not-a-host",
    "does-not-fit",
]

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
"""Best first."""

ROOM = 2
"""A window has room when the cards could hold twice what is asked for, or all that the model was trained for."""

SLOWEST_TOK_S = 5.0
"""Below this at the depth that is needed, a machine is not a host for the model; the sizing guide's figure."""


def verdict(bits: int, where: Literal["whole", "narrow", "partly"], *, room: bool, tok_s: float | None) -> Verdict:
    """The verdict on a file of class ``bits``.

    ``where``: everything on the cards with an f16 cache, with a quantised one, or with layers or experts in RAM.
    ``tok_s``: tokens a second at the depth asked for, predicted or at most; None when nobody can say.
    """
    if tok_s is not None and tok_s < SLOWEST_TOK_S:
        return "not-a-host"
    if bits < LEAST_BITS:
        return "not-recommended"
    if where != "whole":
        aside: Verdict = "narrow-cache" if where == "narrow" else "layers-in-ram"
        return aside if bits >= TARGET_BITS else "not-recommended"
    if bits < TARGET_BITS:
        return "usable"
    return "recommended" if room else "fits"
