"""Shares of the cards: what no 32-bit float holds is refused, as a spec and by the code beneath."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from llamarig.errors import RigError
from llamarig.memory.placement.layers import _places
from llamarig.spec.service import Service


@pytest.mark.parametrize("shares", [(1.0, 1e99), (1e-99, 1e-99), (1.0, float("nan"))])
def test_shares_without_a_sum_are_refused(shares: tuple[float, ...]) -> None:
    with pytest.raises(RigError, match="shares of the cards add up to"):
        _places(8, None, shares)


@pytest.mark.parametrize("share", [0.0, 1e-99, 1e99, 1_000_001.0])
def test_a_share_of_a_spec_has_bounds(share: float) -> None:
    with pytest.raises(ValidationError, match="tensor-split"):
        Service.model_validate(
            {
                "model": "m",
                "context": 4096,
                "listen": {"port": 8080},
                "split-mode": "layer",
                "tensor-split": [1.0, share],
            }
        )


def test_the_most_uneven_shares_leave_every_block_a_card() -> None:
    assert set(_places(8, None, (0.001, 1_000_000.0))) <= {0, 1}
