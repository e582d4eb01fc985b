"""Which card of the catalog a machine has: by the driver's name for it, its PCI id, or the system's list of names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from llamarig.catalog.gpus import cards
from llamarig.catalog.pci_ids import models as models_by_device

_BUS = re.compile(r"([0-9a-f]{4})?([0-9a-f]{4}):([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])")
_UUID = re.compile(r"GPU-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_LISTED = re.compile(r"[A-Z0-9]+ \[(.+)\]")
_SPACES = re.compile(r"\s+")


@dataclass(frozen=True)
class FoundCard:
    """A card in the machine. ``model`` is None when the catalog does not know it."""

    bus_id: str
    model: str | None
    shown: str
    """What the machine calls it, for people."""
    uuid: str | None
    driver: str
    display: bool
    memory_mib: int | None
    power_default_w: int | None
    power_limit_w: int | None


def _plain(name: str) -> str:
    return _SPACES.sub(" ", name.lower().removeprefix("nvidia ")).strip()


@cache
def _by_name() -> dict[str, list[str]]:
    """Cards of the same name differ in memory."""
    found: dict[str, list[str]] = {}
    for model, card in cards().items():
        found.setdefault(_plain(card.name), []).append(model)
    return found


def _named(name: str, memory_mib: int | None) -> str | None:
    """The one card of that name and, where several bear it, of that memory."""
    models = _by_name().get(_plain(name), [])
    if len(models) > 1:
        near = [
            model for model in models if memory_mib and abs(cards()[model].total_mib - memory_mib) < memory_mib / 10
        ]
        return near[0] if len(near) == 1 else None
    return models[0] if models else None


def bus_id(text: str) -> str:
    """A PCI address as a spec writes it, ``01:00.0``; with its domain where that is not 0; empty when it is none."""
    match = _BUS.fullmatch(text.strip().lower())
    if match is None:
        return ""
    short = f"{match[3]}:{match[4]}.{match[5]}"
    return short if int(match[2], 16) == 0 else f"{match[2]}:{short}"


def model_of(driver_name: str, device: str, listed: str, memory_mib: int | None = None) -> str | None:
    """The catalog's name of a card."""
    if driver_name:
        return _named(driver_name, memory_mib)
    match = _LISTED.fullmatch(listed)
    return models_by_device().get(device.lower()) or (_named(match[1], memory_mib) if match else None)


def found_cards(looked: dict[str, Any]) -> list[FoundCard]:
    """The machine's cards in the order of their bus ids; anything malformed is left out."""
    said = {bus_id(str(card.get("pci.bus_id", ""))): card for card in looked["smi"]["cards"]}
    found = []
    for card in looked["cards"]:
        place = bus_id(str(card.get("bus-id", "")))
        if not place:
            continue
        more = said.get(place, {})
        name = str(more.get("name") or card.get("model") or "")
        uuid = str(more.get("uuid") or card.get("uuid") or "").replace("gpu-", "GPU-")
        found.append(
            FoundCard(
                bus_id=place,
                model=model_of(
                    name, str(card.get("device", "")), str(card.get("listed", "")), _whole(more.get("memory.total"))
                ),
                shown=name or str(card.get("listed") or f"10de:{card.get('device', '')}"),
                uuid=uuid if _UUID.fullmatch(uuid) else None,
                driver=str(card.get("driver", "")),
                display=more.get("display_active") == "Enabled",
                memory_mib=_whole(more.get("memory.total")),
                power_default_w=_whole(more.get("power.default_limit")),
                power_limit_w=_whole(more.get("power.limit")),
            )
        )
    return sorted(found, key=lambda card: card.bus_id)


def _whole(text: Any) -> int | None:
    """The whole part of a figure; nvidia-smi writes [N/A] for what a card does not tell."""
    number = str(text).split(".")[0]
    return int(number) if number.isdecimal() and len(number) < len("1000000") else None
