"""What the bits in a quant's label say of its quality: the same words for advice and alternatives."""

from __future__ import annotations

TARGET_BITS = 4
"""Class from which on a quant is recommended; the sizing guide's target."""

LEAST_BITS = 3
"""Class below which quality suffers too much to recommend it; the sizing guide's word on 2 bits."""


def quality_words(bits: int) -> list[str]:
    """What is to be said against a file of class ``bits``; nothing from the target on, or when its class is unknown."""
    if bits >= TARGET_BITS or not bits:
        return []
    said = f"quants of {bits} bit{'s' if bits > 1 else ''} lose quality; {TARGET_BITS} are the target"
    return [said if bits >= LEAST_BITS else f"not recommended: {said}"]
