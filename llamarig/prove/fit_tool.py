"""The engine's own fit tool: what it is asked, and how its answer is read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

_TAKEN = frozenset(
    {
        "--model",
        "--ctx-size",
        "--parallel",
        "--batch-size",
        "--ubatch-size",
        "--cache-type-k",
        "--cache-type-v",
        "--flash-attn",
        "--load-mode",
    }
)
"""Flags that llama-fit-params shares with the server and that bear on memory; it has none for a unified KV cache,
speculation or a projector (tools/fit-params/fit-params.cpp and the help of build 10454)."""

_ROW = re.compile(r"(?P<device>\S{1,64}) (?P<model>\d{1,9}) (?P<context>\d{1,9}) (?P<compute>\d{1,9}) ?")


@dataclass(frozen=True, slots=True)
class FitRow:
    """One line of the tool, whole MiB, rounded down by it."""

    device: str
    model: int
    context: int
    compute: int


def fit_arguments(argv: Sequence[str]) -> list[str]:
    """The arguments that ask the fit tool about a planned server, on the CPU backend alone.

    ``argv`` is the server's own; every flag of it that is taken has a value. Weights that the CPU repacks are in none
    of the tool's rows, so it is told not to.
    """
    words: list[str] = []
    for flag, value in pairwise(argv):
        if flag in _TAKEN:
            words += [flag, value]
    return [*words, "--device", "none", "--no-repack", "--fit-print", "on", "--offline"]


def read_fit(lines: Iterable[object]) -> list[FitRow]:
    """The rows that the tool printed; what is none is passed over, since a host may say anything."""
    rows = []
    for line in lines:
        found = _ROW.fullmatch(line) if isinstance(line, str) else None
        if found is not None:
            rows.append(FitRow(found["device"], int(found["model"]), int(found["context"]), int(found["compute"])))
    return rows
