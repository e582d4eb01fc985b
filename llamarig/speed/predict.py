"""Tokens a second that a server is expected to reach."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from llamarig.memory.settings import Settings
from llamarig.speed.drafting import acceptance as usual_acceptance
from llamarig.speed.drafting import first_of, tokens_per_pass
from llamarig.speed.passes import draft_seconds, pass_seconds
from llamarig.speed.rates import Rates
from llamarig.speed.work import Work

PROMPT: Final = 8192
"""Tokens of the prompt that a speed of reading is told for."""

DEPTHS: Final = (0, 8192, 32_768, 131_072)
"""Tokens in the window at which a prediction is given, besides the full one."""


@dataclass(frozen=True, slots=True)
class AtDepth:
    """Tokens a second with ``depth`` tokens in the window."""

    depth: int
    decode_tok_s: float
    prefill_tok_s: float | None


@dataclass(frozen=True, slots=True)
class Speed:
    """Of one slot that is served alone."""

    decode_tok_s: float
    """With a nearly empty window."""
    prefill_tok_s: float | None
    """Over a prompt of ``prompt`` tokens."""
    prompt: int
    """8,192 tokens, or the whole window where that is less."""
    at_depth: tuple[AtDepth, ...]
    tokens_per_pass: float
    own_runs: bool
    """Whether measured runs of this very card are among those that the prediction rests on."""


def decode_tok_s(
    work: Work, rates: Rates, *, n_max: int = 0, acceptance: float | None = None, depth: float = 0.0
) -> float:
    """Generated tokens a second with drafts of ``n_max`` tokens of the model's own head.

    ``acceptance`` is kept / drafted at this ``n_max``; without it the usual one is taken.
    """
    seconds = pass_seconds(work, rates, width=1 + n_max, depth=depth)
    if n_max:
        seconds += n_max * draft_seconds(work, rates, depth=depth)
    return tokens_per_pass(n_max, acceptance) / seconds


def prefill_tok_s(work: Work, rates: Rates, *, ubatch: int, prompt: int) -> float | None:
    """Read tokens a second over a prompt from an empty window; None when the card's arithmetic rate is not known.

    Passes of ``ubatch`` tokens; the window fills evenly, so that half of it is seen on average.
    """
    if rates.arithmetic == float("inf") or prompt <= 0:
        return None
    width = min(ubatch, prompt)
    return width / pass_seconds(work, rates, width=width, depth=prompt / 2, outputs=0)


def sweep(
    work: Work, rates: Rates, *, up_to: int = 8, acceptance: float | None = None, at: int = 0
) -> dict[int, float]:
    """Decode tokens a second for every n_max from 0 to ``up_to``.

    ``acceptance`` measured at n_max ``at`` sets how well drafts are guessed; the decay over positions is the usual one.
    """
    first = first_of(acceptance, at) if acceptance is not None and at else None
    found = {}
    for n_max in range(up_to + 1):
        own = None if first is None else usual_acceptance(n_max, first)
        found[n_max] = decode_tok_s(work, rates, n_max=n_max, acceptance=own)
    return found


def predict(work: Work, rates: Rates, settings: Settings, slot_context: int) -> Speed | None:
    """The speed of one slot; None when part of the weights is read from RAM, whose bandwidth nobody states here.

    Drafts of n-grams and of separate models are not counted: how often they are kept depends on the text alone.
    """
    if work.elsewhere or not work.read():
        return None
    n_max = settings.n_max if settings.mtp else 0
    depths = (*(depth for depth in DEPTHS if depth < slot_context), slot_context)
    rows = tuple(
        AtDepth(
            depth,
            decode_tok_s(work, rates, n_max=n_max, depth=depth),
            prefill_tok_s(work, rates, ubatch=settings.ubatch, prompt=depth) if depth else None,
        )
        for depth in depths
    )
    return Speed(
        decode_tok_s=rows[0].decode_tok_s,
        prefill_tok_s=prefill_tok_s(work, rates, ubatch=settings.ubatch, prompt=min(PROMPT, slot_context)),
        prompt=min(PROMPT, slot_context),
        at_depth=rows,
        tokens_per_pass=tokens_per_pass(n_max),
        own_runs=rates.measured,
    )
