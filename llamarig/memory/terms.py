"""The parts of a process's memory by their fixed names."""

from __future__ import annotations

from typing import Literal, get_args

Term = Literal[
    "weights",
    "kv-cache",
    "recurrent-state",
    "draft-weights",
    "draft-kv-cache",
    "compute",
    "draft-compute",
    "projector",
    "process",
]
"""A part of a process's memory; the names are fixed, other tools read them."""

TERMS: tuple[str, ...] = get_args(Term)
"""In the order in which they are shown."""
