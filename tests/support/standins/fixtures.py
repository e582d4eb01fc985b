"""Fixtures of the stand-ins: a conftest.py that imports them has them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from llamarig.converge.store.pip_config import pip_config
from tests.support.standins.forge import Forge
from tests.support.standins.forge import forge as run_forge
from tests.support.standins.hub import FakeHub, fake_hub
from tests.support.standins.index import FakeIndex, fake_index


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeHub]:
    """A hub, and a token of the user's for it."""
    with fake_hub() as running:
        monkeypatch.setenv("HF_ENDPOINT", running.address)
        monkeypatch.setenv("HF_TOKEN", "hf_the-users-token")
        yield running


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeIndex]:
    """An index of Python distributions, which pip's own settings name."""
    with fake_index() as running:
        monkeypatch.setenv("PIP_INDEX_URL", running.address)
        monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
        pip_config.cache_clear()
        yield running
    pip_config.cache_clear()


@pytest.fixture
def forge(tmp_path: Path) -> Iterator[Forge]:
    """A forge with repositories and requests."""
    with run_forge(tmp_path) as running:
        yield running
