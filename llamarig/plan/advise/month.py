"""What a month's tokens cost on the card, beside a hosted offer. Money is in the user's own currency."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from llamarig.catalog.gpus import Card
from llamarig.speed.economics import HOURS_A_MONTH, Costs, Hosted, Load, Machine, monthly, power_of

INPUT_TOKENS = 10e6
OUTPUT_TOKENS = 2e6
"""Tokens a month when nobody says how many: those of the published comparison."""


@dataclass(frozen=True)
class Money:
    """What is asked about a month."""

    price_kwh: float
    input_tokens: float = INPUT_TOKENS
    output_tokens: float = OUTPUT_TOKENS
    hosted: Hosted | None = None
    hardware: float = 0.0
    years: float = 4.0


def month_of(money: Money | None, card: Card, prefill: float | None, decode: float | None) -> Costs | None:
    """The month on ``card`` at its board power; None where power or speed is not known, or nothing was asked."""
    power = power_of(card)
    if money is None or power is None or prefill is None or decode is None:
        return None
    load = Load(
        input_tokens=money.input_tokens,
        output_tokens=money.output_tokens,
        prefill_tok_s=prefill,
        decode_tok_s=decode,
    )
    machine = Machine(power_w=power, price_kwh=money.price_kwh, hardware=money.hardware, lifetime_years=money.years)
    return monthly(load, machine, money.hosted)


def month_json(costs: Costs) -> dict[str, Any]:
    """The documented form."""
    return {
        "hours": round(costs.hours, 1),
        "possible": costs.possible,
        "energy-kwh": round(costs.energy_kwh, 2),
        "electricity": round(costs.electricity, 2),
        "hardware": round(costs.hardware, 2),
        "million": round(costs.million, 3),
        "hosted": None if costs.hosted is None else round(costs.hosted, 2),
    }


def month_words(costs: Costs) -> str:
    """The month in one line."""
    words = f"{costs.hours:,.1f} hours of work"
    if not costs.possible:
        return f"{words}, and a month has {HOURS_A_MONTH:,.0f}: more than one slot can do"
    words += f", {costs.energy_kwh:,.1f} kWh: {costs.electricity:,.2f} for electricity"
    if costs.hardware:
        words += f" and {costs.hardware:,.2f} for the hardware"
    words += f", {costs.million:,.2f} a million tokens"
    return words if costs.hosted is None else f"{words}; hosted {costs.hosted:,.2f} ({_ratio(costs)})"


def _ratio(costs: Costs) -> str:
    if not costs.own or not costs.hosted:
        return "nothing to compare"
    dearer = costs.hosted >= costs.own
    times = costs.hosted / costs.own if dearer else costs.own / costs.hosted
    return f"{times:,.1f} times as much" if dearer else f"here it is {times:,.1f} times as much"
