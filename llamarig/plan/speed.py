"""How fast each service is expected to be, and what it cannot pass."""

from __future__ import annotations

from typing import Any

from llamarig.catalog.gpus import Card
from llamarig.catalog.gpus import card as find_card
from llamarig.plan.load import Headers, Load
from llamarig.plan.settings import model_cards, settings_of
from llamarig.plan.types import ServiceSpeed
from llamarig.spec.host import HostSpec
from llamarig.spec.service import Service
from llamarig.speed import limits, predict, rates_of, work_of


def card_of(spec: HostSpec, service: Service) -> tuple[str, Card] | None:
    """The spec's name and the catalog's entry of the one card that holds the service's model."""
    names = model_cards(spec, service)
    known = find_card(spec.gpus[names[0]].model) if len(names) == 1 and names[0] in spec.gpus else None
    return None if known is None else (names[0], known)


def speed_of(spec: HostSpec, name: str, load: Load, headers: Headers) -> ServiceSpeed | None:
    """The speed of the service ``name``; None without a header, for a router, and unless one known card holds it."""
    service = spec.services[name]
    header, placed = headers.get(service.model), card_of(spec, service)
    if service.router is not None or header is None or placed is None:
        return None
    if load.estimate is None or load.estimate.shape is None:
        return None
    gpu, card = placed
    settings = settings_of(spec, service)
    work = work_of(header, load.estimate.shape, settings)
    rates = rates_of(spec.gpus[gpu].model, card, power_limit_w=spec.gpus[gpu].power_limit_w)
    return ServiceSpeed(predict(work, rates, settings, load.estimate.slot_context), limits(work, card, settings))


def unknown_words(spec: HostSpec, name: str, speed: ServiceSpeed | None, headers: Headers) -> str | None:
    """Why no speed is predicted for the service ``name``; None when one is."""
    if speed is not None and speed.expected is not None:
        return None
    service = spec.services[name]
    cards = model_cards(spec, service)
    reasons = (
        (service.router is not None, "a router is as fast as the model that it has loaded"),
        (not cards, "the CPU backend is not predicted"),
        (len(cards) > 1, "a model on several cards is not predicted"),
        (headers.get(service.model) is None, "the model's header is not at hand"),
        (card_of(spec, service) is None, "the catalog does not know the card"),
        (speed is None, "what the model needs is not known"),
    )
    read = "part of the model is read from RAM, whose bandwidth is not known"
    return next((words for found, words in reasons if found), read)


def speed_json(speed: ServiceSpeed | None) -> dict[str, Any] | None:
    """The documented form; None where nothing can be said."""
    if speed is None or speed.expected is None:
        return None
    found, most = speed.expected, speed.limits
    return {
        "decode-tok-s": round(found.decode_tok_s, 1),
        "decode-tok-s-full": round(found.at_depth[-1].decode_tok_s, 1),
        "prefill-tok-s": _rounded(found.prefill_tok_s),
        "prefill-prompt": found.prompt,
        "tokens-per-pass": round(found.tokens_per_pass, 2),
        "basis": "runs-of-this-card" if found.own_runs else "runs-of-other-cards",
        "limit": {"decode-tok-s": round(most.decode_tok_s, 1), "prefill-tok-s": _rounded(most.prefill_tok_s)},
        "at-depth": [
            {
                "depth": row.depth,
                "decode-tok-s": round(row.decode_tok_s, 1),
                "prefill-tok-s": _rounded(row.prefill_tok_s),
            }
            for row in found.at_depth
        ],
    }


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 1)
