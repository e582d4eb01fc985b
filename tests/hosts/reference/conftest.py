"""A lab of this tier's own."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    """One a checkout; leftovers of a run that was cut off are taken away first."""
    made = Lab("reference-" + hashlib.sha256(str(Path(__file__).resolve()).encode()).hexdigest()[:8])
    made.clear()
    try:
        yield made
    finally:
        made.remove()
