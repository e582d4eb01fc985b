"""Measured runs, and the parameters of the speed model that were fitted to them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated

from pydantic import Field

from llamarig.catalog.data import Entry, read
from llamarig.catalog.gpus import Positive

Share = Annotated[float, Field(ge=0, le=1)]


class MeasuredModel(Entry):
    """A model's dimensions, as far as they bear on speed. Counts are of weights, rows are elements a token."""

    layers: int
    matrices: Positive
    """Weights that every token multiplies, without embedding, output and draft head."""
    output: Positive
    """Weights of the output matrix; the embedding has as many."""
    draft: float = 0.0
    """Weights of the draft head's own matrices."""
    experts: float = 0.0
    """Weights of all experts of all layers."""
    expert_share: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Experts that a token uses / experts."""
    state_bytes: float = 0.0
    kv_elements: float
    """Of K and V, over all layers."""
    draft_kv_elements: float = 0.0
    attention_flops: float
    """Operations for one token that looks at one token: 4 x query width, over all layers."""
    source: str


class Run(Entry):
    """One measured run: a model's file on a card, with its settings, and tokens a second."""

    name: str
    card: str
    model: str
    file_gb: Positive
    """10^9 bytes of the file."""
    type: str
    """The tensor type of most of its weights; of a model of experts, that of all its experts."""
    dense_type: str | None = None
    """The type of the other weights of a model of experts."""
    embedding_bits: Positive = 4.5
    """Bits a weight of the embedding, which stays in RAM."""
    output_bits: Positive = 6.5625
    kv: str = "q4_0"
    n_max: int = 0
    acceptance: Share | None = None
    """Kept / drafted tokens, as the server counts them; None: not published."""
    acceptance_assumed: bool = False
    """Whether ``acceptance`` was measured in another run of the same machine."""
    depth: float = 400.0
    """Tokens in the window while it generated, on average."""
    decode_tok_s: Positive | None = None
    prompt: int = 0
    """Tokens of the prompt, for a run that was timed while it read."""
    ubatch: int = 512
    prefill_tok_s: Positive | None = None
    power_limit_w: Positive | None = None
    """When it was set below the board's own."""
    fit: bool = True
    """False: printed beside the prediction only, with the reason under ``note``."""
    note: str = ""
    source: str
    """One of ``sources``."""


class Speeds(Entry):
    """The file as a whole."""

    sources: dict[str, str]
    models: dict[str, MeasuredModel]
    runs: list[Run]
    fitted: dict[str, float]
    """Parameters by name; ``card:NAME`` is that card's arithmetic rate / its single-precision rate on paper."""
    error: dict[str, float]
    """Root mean square of ln(predicted / measured) with each run left out in turn: ``decode``, ``prefill``."""


@cache
def speeds() -> Speeds:
    """The catalog's runs and parameters."""
    return Speeds.model_validate(read("speeds.yml"))


def sources() -> Mapping[str, str]:
    """Where the runs were published, by the name that a run uses."""
    return speeds().sources
