"""Wrong values that many people write, each with the message that teaches why not."""

from __future__ import annotations

import re

from llamarig.spec.tree import Loc, Tree

_INDEX = re.compile(r"(?i)(cuda|gpu)?:?[0-9]{1,2}")
_GPU_KEYS = ("gpu", "projector-gpu")
_HEX = re.compile(r"[0-9]+(e[0-9]+)?", re.IGNORECASE)


def teach(here: Tree, loc: Loc) -> tuple[str, str] | None:
    """Message and fix for a value at ``loc`` that is refused, or None when there is nothing special to say."""
    for lesson in (_version, _gpus, _index, _native, _number):
        taught = lesson(here, loc)
        if taught is not None:
            return taught
    return None


def _version(here: Tree, loc: Loc) -> tuple[str, str] | None:
    if loc != ("schema-version",):
        return None
    return (
        f"`schema-version` is {here.text or 'no number'}, but this llamarig reads version 1",
        "write `schema-version: 1`, or use the llamarig that the spec was written for",
    )


def _index(here: Tree, loc: Loc) -> tuple[str, str] | None:
    if loc[:1] != ("services",) or not (loc[-1] in _GPU_KEYS or "gpus" in loc) or not _INDEX.fullmatch(here.text):
        return None
    return (
        f"`{here.text}` names a card by its index, and indexes change with drivers, slots and tools",
        "name the card under `gpus`, with its `bus-id` or `uuid`, and write that name here",
    )


def _native(here: Tree, loc: Loc) -> tuple[str, str] | None:
    if loc[:2] != ("engine", "architectures") or here.text != "native":
        return None
    return (
        "`native` builds for whatever card the building machine has",
        "name each card's architecture, for example [120a-real, 89-real]",
    )


def _number(here: Tree, loc: Loc) -> tuple[str, str] | None:
    if loc[-1:] not in (("commit",), ("head",), ("revision",)) or not here.plain or not _HEX.fullmatch(here.text):
        return None
    return f"`{loc[-1]}` reads as a number", f'write it in quotes: "{here.text}"'


def _gpus(here: Tree, loc: Loc) -> tuple[str, str] | None:
    if loc == ("gpus",) and isinstance(here.value, list):
        return (
            "`gpus` is a mapping from a name of your own to a card, not a list: a card has no index",
            'write `gpus: {big: {model: rtx-4090, bus-id: "01:00.0"}}`',
        )
    if loc[:1] == ("gpus",) and len(loc[1:]) == 1 and _INDEX.fullmatch(str(loc[1])):
        return (
            f"`{loc[1]}` names a card by its index, and indexes change with drivers, slots and tools",
            "give the card a name of your own (`big`, `upper`), and its `bus-id` or `uuid` below it",
        )
    return None
