"""The index of Python distributions that the tests of a toolkit talk to."""

from __future__ import annotations

from tests.support.standins.fixtures import index as served

__all__ = ["served"]
