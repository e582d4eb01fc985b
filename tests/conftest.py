"""Paths that the tests import from, and the switch for those that need a test host."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
for place in (TESTS / "hosts", TESTS.parent):
    if str(place) not in sys.path:
        sys.path.insert(0, str(place))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--lab", action="store_true", help="also run what needs test hosts (scripts/test does)")
    parser.addoption("--full-fleet", action="store_true", help="the fleet's tests with eight hosts and 20 kills")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Everything below tests/hosts is a host test; it runs only when asked for."""
    for item in items:
        if TESTS / "hosts" in item.path.parents:
            item.add_marker(pytest.mark.host)
    if not config.getoption("--lab"):
        away = [item for item in items if item.get_closest_marker("host")]
        items[:] = [item for item in items if not item.get_closest_marker("host")]
        config.hook.pytest_deselected(items=away)
