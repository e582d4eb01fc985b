"""What a million tokens cost on a machine of one's own, against a hosted offer."""

from __future__ import annotations

from dataclasses import dataclass

from llamarig.catalog.gpus import Card
from llamarig.errors import RigError

HOURS_A_MONTH = 365.25 * 24 / 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Tokens a month, and how fast they are read and generated."""

    input_tokens: float
    output_tokens: float
    prefill_tok_s: float
    decode_tok_s: float

    @property
    def hours(self) -> float:
        """Hours a month in which the machine works."""
        return (self.input_tokens / self.prefill_tok_s + self.output_tokens / self.decode_tok_s) / 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What the machine draws and costs. Money is in the user's own currency."""

    power_w: float
    """While it works: of the card, or of the whole machine at the wall."""
    idle_w: float = 0.0
    """While it waits; 0 when it would be on anyway."""
    price_kwh: float
    hardware: float = 0.0
    """Price of what was bought for this; 0 when it is there already."""
    lifetime_years: float = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosted:
    """A hosted offer: price of a million tokens."""

    input_million: float
    output_million: float


@dataclass(frozen=True, slots=True)
class Costs:
    """A month, in the user's currency."""

    energy_kwh: float
    electricity: float
    hardware: float
    hours: float
    """In which the machine works; more than 730 is more than it can do."""
    million: float
    """Of a million tokens, read and generated ones together."""
    hosted: float | None
    """The same tokens at the hosted offer."""

    @property
    def own(self) -> float:
        """Electricity and hardware."""
        return self.electricity + self.hardware

    @property
    def possible(self) -> bool:
        """Whether a month is long enough."""
        return self.hours <= HOURS_A_MONTH


def power_of(card: Card, power_limit_w: float | None = None) -> float | None:
    """Watts of a card that works: its cap or the board's power, whichever is less; None when neither is known.

    Generating without drafts draws less (537 W of 600 were measured on one card); a measured figure is better.
    """
    known = [watts for watts in (card.power_w, power_limit_w) if watts]
    return min(known) if known else None


def hosted_cost(load: Load, offer: Hosted) -> float:
    """What the month's tokens cost at a hosted offer."""
    return (load.input_tokens * offer.input_million + load.output_tokens * offer.output_million) / 1e6


def monthly(load: Load, machine: Machine, offer: Hosted | None = None) -> Costs:
    """What the month costs here and, when an offer is given, there.

    Raises :class:`RigError` when a figure makes no sense.
    """
    _check(load, machine)
    hours = load.hours
    idle = max(HOURS_A_MONTH - hours, 0.0)
    energy = (machine.power_w * hours + machine.idle_w * idle) / 1000
    electricity = energy * machine.price_kwh
    hardware = machine.hardware / (machine.lifetime_years * 12)
    tokens = load.input_tokens + load.output_tokens
    return Costs(
        energy_kwh=energy,
        electricity=electricity,
        hardware=hardware,
        hours=hours,
        million=(electricity + hardware) / tokens * 1e6,
        hosted=None if offer is None else hosted_cost(load, offer),
    )


def _check(load: Load, machine: Machine) -> None:
    wrong = {
        "tokens a month": load.input_tokens + load.output_tokens <= 0 or min(load.input_tokens, load.output_tokens) < 0,
        "speed": min(load.prefill_tok_s, load.decode_tok_s) <= 0,
        "power": machine.power_w <= 0 or machine.idle_w < 0,
        "price": machine.price_kwh < 0 or machine.hardware < 0,
        "lifetime": machine.lifetime_years <= 0,
    }
    for what, found in wrong.items():
        if found:
            raise RigError(
                what=f"the {what} makes no sense: {load if what in {'tokens a month', 'speed'} else machine}",
                fix="give figures above 0; prices may be 0",
            )
