"""How fast each service is expected to be, and what it cannot pass."""

from __future__ import annotations

from typing import Any

from llamarig.catalog.gpus import Card
from llamarig.catalog.gpus import card as find_card
from llamarig.memory.units import MIB
from llamarig.plan.load import Headers, Load
from llamarig.plan.settings import model_cards, settings_of
from llamarig.plan.types import ServiceSpeed
from llamarig.spec.host import HostSpec
from llamarig.spec.service import Service
from llamarig.speed import limits_on, predict, rates_of, work_of


def cards_of(spec: HostSpec, service: Service) -> dict[str, Card]:
    """The catalog's entries of the cards that hold the service's model; empty unless every one of them is known."""
    names = model_cards(spec, service)
    found = {name: known for name in names if name in spec.gpus and (known := find_card(spec.gpus[name].model))}
    return found if len(found) == len(names) else {}


def speed_of(spec: HostSpec, name: str, load: Load, headers: Headers) -> ServiceSpeed | None:
    """The speed of the service ``name``; None without a header, for a router, and unless known cards hold it.

    On several cards there are bounds and no prediction.
    """
    service = spec.services[name]
    header, cards = headers.get(service.model), cards_of(spec, service)
    if service.router is not None or header is None or not cards:
        return None
    if load.estimate is None or load.estimate.shape is None:
        return None
    settings = settings_of(spec, service)
    work = work_of(header, load.estimate.shape, settings)
    # How experts that a token does not use are dealt out among the cards is left open: the fastest reads all then.
    held = [] if work.experts else [load.cards.get(gpu, {}).get("weights", 0.0) * MIB for gpu in cards]
    bounds = limits_on(work, tuple(cards.values()), settings, held)
    if len(cards) > 1:
        return ServiceSpeed(None, bounds)
    (gpu, card), *_ = cards.items()
    rates = rates_of(spec.gpus[gpu].model, card, power_limit_w=spec.gpus[gpu].power_limit_w)
    return ServiceSpeed(predict(work, rates, settings, load.estimate.slot_context), bounds)


def unknown_words(spec: HostSpec, name: str, speed: ServiceSpeed | None, headers: Headers) -> str | None:
    """Why no speed is predicted for the service ``name``; None when one is."""
    if speed is not None and speed.expected is not None:
        return None
    service = spec.services[name]
    cards = model_cards(spec, service)
    reasons = (
        (service.router is not None, "a router is as fast as the model that it has loaded"),
        (not cards, "the CPU backend is not predicted: no bandwidth of RAM is known"),
        (len(cards) > 1, "a model on several cards is not predicted"),
        (headers.get(service.model) is None, "the model's header is not at hand"),
        (not cards_of(spec, service), "the catalog does not know the card"),
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
