"""The catalog's cards: what data sheets and drivers say must go together."""

from __future__ import annotations

import copy
import re
from pathlib import Path

import pytest

from llamarig.catalog.data import read
from llamarig.catalog.gpus import Card, cards
from llamarig.converge.discover.cards import model_of
from llamarig.spec.host import HostSpec
from llamarig.spec.rules.base import View
from llamarig.spec.rules.driver import power
from tests.support.plan_specs import REFERENCE

BANDWIDTHS = {
    "pascal": (300, 800),
    "turing": (300, 700),
    "ampere": (190, 2100),
    "ada": (200, 1100),
    "hopper": (2000, 5000),
    "blackwell": (280, 1800),
}
"""GB/s that the desktop and data-centre cards of a generation span, by the vendor's own tables."""
NOMINAL_GB = (8, 10, 11, 12, 16, 20, 24, 32, 48, 80, 40, 94, 96, 141)


@pytest.mark.parametrize("name", sorted(cards()))
def test_a_cards_figures_go_together(name: str) -> None:
    card = cards()[name]
    low, high = BANDWIDTHS[card.generation]
    assert low <= card.bandwidth_gb_s <= high
    nominal = min(size for size in NOMINAL_GB if card.total_mib <= size * 1024)
    assert card.total_mib > 0.89 * nominal * 1024
    assert card.usable_mib is None or 0.95 * card.total_mib < card.usable_mib < card.total_mib
    assert card.power_w is not None
    assert (card.power_min_w or 0) < card.power_w <= (card.power_max_w or card.power_w)
    assert card.fp32_tflops is not None
    assert 0.03 < card.fp32_tflops / card.power_w < 0.45
    assert not card.ecc_on or card.ecc


def test_figures_are_there_for_the_cards_that_people_run() -> None:
    assert {
        "rtx-4060-ti-16gb", "rtx-4070-ti-super", "rtx-4080-super", "rtx-3080-ti", "rtx-3090-ti", "rtx-5060-ti-16gb",
        "titan-rtx", "t4", "rtx-a2000-12gb", "rtx-a4000", "rtx-a5000", "rtx-a6000", "a10", "a16", "a30", "a40",
        "a100-pcie-40gb", "l4", "l40", "l40s", "rtx-4000-ada", "rtx-5000-ada", "rtx-6000-ada", "h100-pcie",
        "rtx-pro-2000-blackwell", "rtx-pro-4500-blackwell", "rtx-pro-5000-blackwell", "rtx-pro-6000-blackwell-server",
    } <= set(cards())  # fmt: skip


def test_an_implausible_card_is_refused() -> None:
    whole = cards()["l4"].model_dump(by_alias=True)
    with pytest.raises(ValueError, match="total-mib"):
        Card.model_validate(whole | {"total-mib": -1})
    with pytest.raises(ValueError, match="tflops"):
        Card.model_validate(whole | {"tflops": 30.3})


def test_pci_ids_name_cards_of_the_catalog() -> None:
    ids = read("pci_ids.yml")["cards"]
    assert set(ids.values()) <= set(cards())
    assert all(re.fullmatch("[0-9a-f]{4}", found) for found in ids)


@pytest.mark.parametrize(
    ("memory", "model"), [(16_380, "rtx-4060-ti-16gb"), (8_188, "rtx-4060-ti"), (None, None), (12_000, None)]
)
def test_cards_of_one_name_are_told_apart_by_their_memory(memory: int | None, model: str | None) -> None:
    assert model_of("NVIDIA GeForce RTX 4060 Ti", "", "", memory) == model
    assert model_of("NVIDIA L4", "", "", memory) == "l4"


@pytest.mark.parametrize(
    ("model", "limit", "words"),
    [
        ("rtx-5090", 300, "300 W is below the 400 W"),
        ("rtx-5090", 650, "650 W is above the 600 W"),
        ("rtx-5090", 600, ""),
        ("rtx-4090", 100, ""),
        ("rtx-4090", 451, "451 W is above the 450 W"),
        ("rtx-4090", 1900, "1900 W is above the 450 W"),
        ("rtx-4090", 5, "5 W is below 20 % of the 450 W"),
        ("rtx-4090", 89, "89 W is below 20 % of the 450 W"),
        ("rtx-4090", 90, ""),
        ("a100-sxm4-80gb", 100, ""),
        ("a100-sxm4-80gb", 90, "90 W is below the 100 W"),
    ],
)
def test_a_power_limit_lies_in_the_range_of_the_card(model: str, limit: int, words: str) -> None:
    document = copy.deepcopy(REFERENCE)
    document["gpus"]["blackwell"] |= {"model": model, "power-limit-w": limit}
    said = [broken.message for broken in power(View(HostSpec.model_validate(document), document, Path()))]
    assert (said[0] if said else "").startswith(words)
    assert len(said) == bool(words)
