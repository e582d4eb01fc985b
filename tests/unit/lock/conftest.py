"""The stand-ins that the tests of ``lock`` talk to."""

from __future__ import annotations

from tests.support.standins.fixtures import forge, hub, index

__all__ = ["forge", "hub", "index"]
