"""What a month costs here and at a hosted offer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llamarig.catalog.gpus import cards
from llamarig.errors import RigError
from llamarig.speed.economics import HOURS_A_MONTH, Hosted, Load, Machine, hosted_cost, monthly, power_of

GUIDE = Load(input_tokens=10e6, output_tokens=2e6, prefill_tok_s=1000, decode_tok_s=50)
BOX = Machine(power_w=70, price_kwh=0.30)


@pytest.mark.parametrize(("offer", "costs"), [(Hosted(input_million=0.40, output_million=3.00), 10.0),
                                              (Hosted(input_million=0.45, output_million=3.20), 10.9)])  # fmt: skip
def test_the_published_month_costs_10_to_11_at_the_two_hosted_offers(offer: Hosted, costs: float) -> None:
    assert hosted_cost(GUIDE, offer) == pytest.approx(costs)


def test_a_month_of_ones_own_is_hours_x_power_x_price_and_a_share_of_the_hardware() -> None:
    costs = monthly(GUIDE, replace(BOX, hardware=1920, lifetime_years=4), Hosted(input_million=0.4, output_million=3))
    assert costs.hours == pytest.approx((10_000 + 40_000) / 3600)
    assert costs.energy_kwh == pytest.approx(0.9722, abs=1e-4)
    assert costs.electricity == pytest.approx(0.2917, abs=1e-4)
    assert costs.hardware == pytest.approx(40)
    assert costs.own == pytest.approx(40.2917, abs=1e-4)
    assert costs.million == pytest.approx(40.2917 / 12, abs=1e-4)
    assert costs.hosted == pytest.approx(10)
    assert costs.possible


def test_the_measured_energy_of_a_million_tokens_comes_out() -> None:
    """1.032 kWh for a million generated tokens, 162.1 tok/s, 602 W: github.com/sudoingX/qwen38-mtp, rtx-5090.md."""
    load = Load(input_tokens=0, output_tokens=1e6, prefill_tok_s=1, decode_tok_s=162.1)
    assert monthly(load, Machine(power_w=602, price_kwh=0.15)).energy_kwh == pytest.approx(1.032, abs=1e-3)


def test_waiting_costs_too_and_a_month_ends() -> None:
    waiting = monthly(GUIDE, replace(BOX, idle_w=10))
    assert waiting.energy_kwh > 7 > monthly(GUIDE, BOX).energy_kwh
    assert waiting.hosted is None
    much = monthly(replace(GUIDE, output_tokens=1e9), replace(BOX, idle_w=10))
    assert much.hours > HOURS_A_MONTH
    assert not much.possible


@pytest.mark.parametrize(
    ("load", "machine"),
    [
        (replace(GUIDE, input_tokens=0, output_tokens=0), BOX),
        (replace(GUIDE, input_tokens=-1), BOX),
        (replace(GUIDE, decode_tok_s=0), BOX),
        (GUIDE, replace(BOX, power_w=0)),
        (GUIDE, replace(BOX, price_kwh=-0.1)),
        (GUIDE, replace(BOX, lifetime_years=0)),
    ],
)
def test_figures_that_make_no_sense_are_refused(load: Load, machine: Machine) -> None:
    with pytest.raises(RigError) as caught:
        monthly(load, machine)
    assert "makes no sense" in caught.value.what
    assert caught.value.fix


def test_a_card_draws_its_cap_or_its_boards_power() -> None:
    card = cards()["rtx-4090"]
    assert (power_of(card), power_of(card, 350), power_of(card, 600)) == (450, 350, 450)
    assert power_of(card.model_copy(update={"power_w": None})) is None
