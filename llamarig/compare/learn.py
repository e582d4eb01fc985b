"""Cards by UUID: what the driver tells of the card at a bus id takes the place of a UUID that the spec leaves out.

Once recorded a UUID is pinned: another card in its place is an error, never a new pin
(docs/decisions/0011-uuids-are-learned-from-the-look.md).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from llamarig.compare.text import printable
from llamarig.compare.view import View, as_map, as_text, view_of
from llamarig.errors import ExitCode, RigError
from llamarig.plan.environment import UNLEARNED, VISIBLE
from llamarig.render.power import with_uuids
from llamarig.render.quoting import quote
from llamarig.render.wanted import UNITS, Wanted, WantedCard, WantedFile, WantedService
from llamarig.spec.hardware import UUID_PATTERN

_UUID = re.compile(UUID_PATTERN)


def learn(wanted: Wanted, observed: Mapping[str, Any]) -> Wanted:
    """The wanted state with every UUID that the record or the driver knows; the same one when nothing is left open.

    Raises :class:`RigError` when a card is not the one that the spec or the record names.
    """
    view = view_of(wanted, observed)
    seen = _seen(view)
    cards = tuple(_known(card, view, seen) for card in wanted.cards)
    wanted = _power(wanted, cards, seen)
    if cards == wanted.cards:
        return wanted
    known = {card.name: card.uuid for card in cards if card.uuid is not None}
    services = tuple(_bound(service, known) for service in wanted.services)
    return replace(wanted, cards=cards, services=services, files=_files(wanted, services))


def _power(wanted: Wanted, cards: tuple[WantedCard, ...], seen: Mapping[str, str]) -> Wanted:
    """The limits of power by UUID, also those of cards that no service uses."""
    if wanted.power is None or all(card.uuid for card in wanted.power.cards):
        return wanted
    told = {card.name: seen.get(card.bus_id) for card in wanted.power.cards}
    power = with_uuids(wanted.power, told | {card.name: card.uuid for card in cards})
    return wanted if power == wanted.power else replace(wanted, power=power)


def pinned(view: View, card: WantedCard) -> str | None:
    """The UUID that the record holds for a card of the spec."""
    return _uuid(as_map(view.record.get("gpus")).get(card.name))


def _uuid(value: object) -> str | None:
    text = as_text(value)
    return text if text is not None and _UUID.fullmatch(text) else None


def _seen(view: View) -> dict[str, str]:
    """Bus id -> UUID of the cards whose driver runs."""
    listed = view.observed.get("gpus")
    cards = [as_map(card) for card in listed] if isinstance(listed, list) else []
    told = {as_text(card.get("bus-id")): _uuid(card.get("uuid")) for card in cards}
    return {place: uuid for place, uuid in told.items() if place and uuid}


def _known(card: WantedCard, view: View, seen: Mapping[str, str]) -> WantedCard:
    here, named = seen.get(card.bus_id), card.uuid or pinned(view, card)
    if named is None:
        return replace(card, uuid=here)
    elsewhere = [place for place, uuid in seen.items() if uuid == named and place != card.bus_id]
    if card.bus_id and (elsewhere or here not in (None, named)):
        by = "the spec" if card.uuid else "the record of the last apply"
        there = f"the driver tells {here}" if here else "the driver tells of no card"
        moved = f"; that one is now at {printable(elsewhere[0])}" if elsewhere else ""
        raise RigError(
            what=f"card {card.name} is not the one that it was",
            where=view.wanted.host,
            why=f"at {card.bus_id} {there}, {by} names {named}{moved}",
            fix=f"if it was replaced or moved on purpose, say so in the spec: gpus.{card.name}.uuid, or its bus-id",
            code=ExitCode.FINDING,
        )
    return replace(card, uuid=named)


def _bound(service: WantedService, known: Mapping[str, str]) -> WantedService:
    """The service with UUIDs in the places of cards that were not known by one."""
    visible = service.environment.get(VISIBLE, "")
    if UNLEARNED not in visible:
        return service
    places = [known.get(place.removeprefix(f"{UNLEARNED}:"), place) for place in visible.split(",")]
    first = places[0] if not places[0].startswith(UNLEARNED) else None
    return replace(service, environment=service.environment | {VISIBLE: ",".join(places)}, gpu_uuid=first)


def _files(wanted: Wanted, services: tuple[WantedService, ...]) -> tuple[WantedFile, ...]:
    """The units of the services with the line that names their cards."""
    changed = {
        f"{UNITS}/{new.unit}": (old, new) for old, new in zip(wanted.services, services, strict=True) if old != new
    }
    files = []
    for file in wanted.files:
        before, after = changed.get(file.path, (None, None))
        if before is not None and after is not None:
            files.append(replace(file, content=file.content.replace(_line(before), _line(after))))
        else:
            files.append(file)
    return tuple(files)


def _line(service: WantedService) -> str:
    return f"\nEnvironment={quote(f'{VISIBLE}={service.environment[VISIBLE]}')}\n"
