"""What a card reaches of what it promises: the parameters that measured runs were fitted to."""

from __future__ import annotations

from dataclasses import dataclass

from llamarig.catalog.gpus import Card
from llamarig.catalog.speeds import speeds
from llamarig.speed.kernels import CLASSES, tensor_ratio


@dataclass(frozen=True, slots=True)
class Rates:
    """A card's effective rates, in bytes and operations a second, and fixed times in seconds."""

    bandwidth: float
    """While the vector kernel reads weights or a state is moved."""
    tiles: float
    """While the tile kernel reads weights."""
    experts: float
    """While either kernel reads experts for several tokens."""
    cache: float
    """While attention reads the window."""
    arithmetic: float
    """Single-precision operations a second; infinite when the catalog does not know."""
    tensor: dict[str, float]
    """Operations a second of the tensor cores, by kernel class."""
    attention: float
    """Operations a second of attention."""
    instructions: dict[str, float]
    """Operations that one weight costs for one token in the vector kernel, by kernel class."""
    unpacking: float
    """What unpacking a weight once costs, in tokens."""
    layer_s: float
    """Fixed part of a layer: its kernels are launched, whatever they do."""
    draft_s: float
    """Fixed part of a pass of the draft head: launches, sampling, handing over."""
    measured: bool
    """Whether measured runs of this very card are among those that the parameters were fitted to."""


def rates_of(
    name: str, card: Card, fitted: dict[str, float] | None = None, *, power_limit_w: float | None = None
) -> Rates:
    """The rates of the card that a spec calls ``name``, with its power capped or not.

    A cap below the board's power lowers the clocks, and with them what is computed; memory keeps its own clock.
    ``fitted`` stands in for the catalog's parameters.
    """
    given = speeds().fitted if fitted is None else fitted
    factor = given.get(f"card:{name}", 1.0)
    if power_limit_w and card.power_w:
        factor *= min(power_limit_w / card.power_w, 1.0) ** given["cap"]
    bytes_a_second = card.bandwidth_gb_s * 1e9
    single = card.fp32_tflops * 1e12 * factor if card.fp32_tflops else float("inf")
    return Rates(
        bandwidth=bytes_a_second * given["bandwidth"],
        tiles=bytes_a_second * given["tiles"],
        experts=bytes_a_second * given["experts"],
        cache=bytes_a_second * given["cache"],
        arithmetic=single,
        tensor={kind: single * tensor_ratio(card.compute_capability, kind) * given["tensor"] for kind in CLASSES},
        attention=single * given["attention"],
        instructions={kind: given[f"instructions:{kind}"] for kind in CLASSES},
        unpacking=given["unpacking"],
        layer_s=given["layer-us"] / 1e6,
        draft_s=given["draft-ms"] / 1e3,
        measured=f"card:{name}" in given,
    )
