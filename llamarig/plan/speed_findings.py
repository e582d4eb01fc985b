"""Claims and expectations against arithmetic: what cannot be is an error, what is only unlikely a warning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from llamarig.catalog.gpus import Card
from llamarig.catalog.speeds import speeds
from llamarig.memory.units import MIB
from llamarig.plan.load import Headers
from llamarig.plan.settings import settings_of
from llamarig.plan.speed import cards_of, unknown_words
from llamarig.plan.types import Finding, ServiceSpeed
from llamarig.spec.host import HostSpec
from llamarig.spec.models import Claims, Model
from llamarig.speed.limits import Limits, of_bytes

GB = 1e9
UNMEASURED = 2.0
"""On a card without a measured run the model is trusted half as far."""
SLACK = 1.05
"""Sizes in claims are rounded."""


def speed_findings(spec: HostSpec, name: str, speed: ServiceSpeed | None, headers: Headers) -> Iterator[Finding]:
    """What is claimed of the service's model and cards, and what is expected of the service."""
    service = spec.services[name]
    model = spec.models.get(service.model)
    if model is not None and model.claims is not None:
        yield from _size(spec, name, model, model.claims)
    yield from _arithmetic(spec, name)
    found = speed.limits if speed is not None else _claimed_limits(spec, name, model)
    if found is not None:
        yield from _beyond(spec, name, found)
    else:
        yield from _unchecked(spec, name, headers)
    if speed is not None:
        yield from _unlikely(spec, name, speed)


def _count(number: float) -> str:
    return f"{number:,.0f}" if number < GB else f"{number / GB:,.4g} billion"


def _size(spec: HostSpec, name: str, model: Model, claims: Claims) -> Iterator[Finding]:
    """Parameters x bits are bytes."""
    if claims.parameters is None or claims.bits is None:
        return
    needed = claims.parameters * claims.bits / 8 / GB
    pinned = model.size / GB if isinstance(model.size, int) else None
    cards = cards_of(spec, spec.services[name])
    room = sum(card.total_mib for card in cards.values()) * MIB
    for size, whose in ((claims.size_gb, "are claimed"), (pinned, "are pinned as its size")):
        if size is None or needed <= size * SLACK:
            continue
        beside = ""
        if cards and needed * GB > room:
            beside = f", and {_and(cards)} {'has' if len(cards) == 1 else 'have'} {room / GB:.1f} GB"
        yield Finding(
            "claimed-size",
            "error",
            f"model {spec.services[name].model}: {_count(claims.parameters)} parameters x {claims.bits:g} bits / 8 = "
            f"{needed:,.1f} GB, and {size:,.1f} {whose}{beside}",
            f"{size:,.1f} GB hold {_count(size * GB * 8 / claims.bits)} parameters at {claims.bits:g} bits, or "
            f"{size * GB * 8 / claims.parameters:.2f} bits for each: correct what is wrong",
            name,
        )


def _arithmetic(spec: HostSpec, name: str) -> Iterator[Finding]:
    """Operations a second that a card is said to reach, against its data sheet."""
    for gpu, card in cards_of(spec, spec.services[name]).items():
        claims = spec.gpus[gpu].claims
        if claims is not None and card.fp32_tflops is not None and claims.fp32_tflops > card.fp32_tflops * SLACK:
            yield Finding(
                "claimed-arithmetic",
                "error",
                f"{claims.fp32_tflops:,.0f} TFLOPS in single precision are claimed of {gpu}, and a {card.name} has "
                f"{card.fp32_tflops:,.1f}",
                "correct the claim: a counter of single-precision operations cannot count more than the card executes",
                name,
            )


def _claimed_limits(spec: HostSpec, name: str, model: Model | None) -> Limits | None:
    """The bound that follows from a claim alone, while the model's header is not at hand."""
    cards = cards_of(spec, spec.services[name])
    claims = model.claims if model is not None else None
    if not cards or claims is None:
        return None
    sizes = [claims.size_gb] if claims.size_gb else []
    if claims.parameters and claims.bits:
        sizes.append(claims.parameters * claims.bits / 8 / GB)
    if not sizes:
        return None
    share = claims.active_parameters / claims.parameters if claims.active_parameters and claims.parameters else 1.0
    # The smaller size gives the higher bound: what is beyond it is beyond both.
    size = min(sizes) * GB * min(share, 1.0)
    return of_bytes(size, tuple(cards.values()), settings_of(spec, spec.services[name]))


def _unchecked(spec: HostSpec, name: str, headers: Headers) -> Iterator[Finding]:
    """An expectation that no bound is known for is not passed over in silence."""
    expect = spec.services[name].expect
    wanted = [f"{rate:,.0f} tok/s" for rate in (expect.decode_tok_s, expect.prefill_tok_s) if rate is not None]
    if wanted:
        yield Finding(
            "expectation-unchecked",
            "note",
            f"service {name} is expected to reach {' and '.join(wanted)}, which nothing here is held against: "
            f"{unknown_words(spec, name, None, headers)}",
            "measure it on the host, and expect what was measured",
            name,
        )


def _and(cards: Mapping[str, Card]) -> str:
    *first, last = cards
    return f"{', '.join(first)} and {last}" if first else last


def _reading(spec: HostSpec, name: str, cards: Mapping[str, Card], most: Limits) -> str:
    """At what rate the cards read, in words."""
    rate = f"{most.passes_s * most.pass_bytes / GB:,.0f} GB/s"
    if len(cards) == 1:
        return rate
    return f"{rate} {'together' if spec.services[name].split_mode == 'tensor' else 'one after the other'}"


def _beyond(spec: HostSpec, name: str, most: Limits) -> Iterator[Finding]:
    """More than memory can be read or numbers multiplied."""
    service = spec.services[name]
    cards = cards_of(spec, service)
    if not cards:
        return
    gpu = _and(cards)
    decode, prefill = service.expect.decode_tok_s, service.expect.prefill_tok_s
    if decode is not None and decode > most.decode_tok_s:
        yield Finding(
            "beyond-bandwidth",
            "error",
            f"service {name} is expected to generate {decode:,.0f} tok/s, and {gpu} cannot pass "
            f"{most.decode_tok_s:,.0f}: {_reading(spec, name, cards, most)} / {most.pass_bytes / GB:.1f} GB a pass = "
            f"{most.passes_s:,.1f} passes/s with nothing lost, and a pass yields {most.tokens} "
            f"token{'s' if most.tokens > 1 else ''} at most{', less what drafting reads' if most.drafting else ''}",
            f"expect less than {most.decode_tok_s:,.0f}",
            name,
        )
    if prefill is not None and most.prefill_tok_s is not None and prefill > most.prefill_tok_s:
        yield Finding(
            "beyond-arithmetic",
            "error",
            f"service {name} is expected to read {prefill:,.0f} tok/s, and {gpu} cannot pass "
            f"{most.prefill_tok_s:,.0f}: {most.peak_tflops:,.0f} TFLOPS at their peak / {most.flops / 1e9:.1f} billion "
            "operations a token",
            f"expect less than {most.prefill_tok_s:,.0f}",
            name,
        )


def _unlikely(spec: HostSpec, name: str, speed: ServiceSpeed) -> Iterator[Finding]:
    """Possible, but beyond what measured runs let expect."""
    found, most = speed.expected, speed.limits
    if found is None:
        return
    expect, error = spec.services[name].expect, speeds().error
    rows = (
        ("generate", expect.decode_tok_s, found.decode_tok_s, most.decode_tok_s, error["decode"]),
        ("read", expect.prefill_tok_s, found.prefill_tok_s, most.prefill_tok_s, error["prefill"]),
    )
    for verb, wanted, likely, highest, doubt in rows:
        if wanted is None or likely is None or (highest is not None and wanted > highest):
            continue
        trust = 2 * doubt * (1.0 if found.own_runs else UNMEASURED)
        if wanted > likely * (1 + trust):
            yield Finding(
                "faster-than-predicted",
                "warning",
                f"service {name} is expected to {verb} {wanted:,.1f} tok/s, and {likely:,.1f} are predicted "
                f"(give or take {trust:.0%})",
                f"expect {likely:,.0f} until a measured run says more",
                name,
            )
