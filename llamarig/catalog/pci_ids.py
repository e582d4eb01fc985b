"""Cards and generations by NVIDIA's PCI device id: what is in a machine before a driver runs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated

from pydantic import Field

from llamarig.catalog.data import Entry, read
from llamarig.catalog.gpus import card

Id = Annotated[str, Field(pattern=r"^[0-9a-f]{4}$")]


class _Range(Entry):
    from_: Annotated[Id, Field(alias="from")]
    to: Id
    generation: str


class _Ids(Entry):
    cards: dict[Id, str]
    generations: list[_Range]


@cache
def _ids() -> _Ids:
    return _Ids.model_validate(read("pci_ids.yml"))


def models() -> Mapping[str, str]:
    """The catalog's name of a card by its device id, four hexadecimal digits."""
    return _ids().cards


def generation_of(device: str) -> str | None:
    """The generation of a device, ``2b85`` or ``0x2b85``; None when nothing is known of it."""
    digits = device.lower().removeprefix("0x").rjust(4, "0")
    model = models().get(digits)
    named = card(model) if model is not None else None
    if named is not None:
        return named.generation
    return next((each.generation for each in _ids().generations if each.from_ <= digits <= each.to), None)
