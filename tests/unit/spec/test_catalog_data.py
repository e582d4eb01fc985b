"""The catalog: complete, plausible, with sources; upstream addresses that a mirror can replace."""

from __future__ import annotations

from pathlib import Path

import pytest

from llamarig.catalog.gpus import card, cards, generation
from llamarig.catalog.upstream import OVERRIDE, upstream
from llamarig.errors import RigError


@pytest.mark.parametrize("name", sorted(cards()))
def test_a_card_is_plausible_and_has_a_source(name: str) -> None:
    found = cards()[name]
    needs = generation(found)
    assert 6_000 < found.total_mib < 300_000
    assert found.usable_mib is None or 0.9 * found.total_mib < found.usable_mib < found.total_mib
    assert 100 < found.bandwidth_gb_s < 10_000
    assert found.compute_capability.replace(".", "") == found.architecture.rstrip("af")
    assert found.name.startswith(("NVIDIA ", "Tesla T4", "Quadro RTX "))
    assert len(found.source) > 20
    assert needs.flavours
    assert len(needs.source) > 10


def test_the_cards_of_the_reference_stacks_are_there() -> None:
    known = {name: (found.total_mib, found.bandwidth_gb_s, found.architecture) for name, found in cards().items()}
    assert known["rtx-pro-4000-blackwell-sff"] == (24_467, 432, "120a")
    assert known["rtx-2000-ada"][0] == 15_996
    assert {"rtx-5090", "rtx-4090", "rtx-5080", "rtx-5070-ti", "rtx-5070"} <= set(known)
    measured = card("rtx-5090")
    assert measured is not None
    assert (measured.total_mib, measured.usable_mib) == (32_607, 32_105)
    assert card("rtx-4091") is None


def test_upstream_has_no_trailing_slash() -> None:
    for address in upstream().model_dump().values():
        assert not address.endswith("/")
    assert upstream().engine_pull_ref.format(number=1) == "refs/pull/1/head"


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    upstream.cache_clear()
    yield monkeypatch
    upstream.cache_clear()


def test_a_mirror_replaces_single_addresses(fresh: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own = tmp_path / "upstream.yml"
    own.write_text("model-hub: http://127.0.0.1:8000\n")
    before = upstream().engine_git
    upstream.cache_clear()
    fresh.setenv(OVERRIDE, str(own))
    assert upstream().model_hub == "http://127.0.0.1:8000"
    assert upstream().engine_git == before


@pytest.mark.parametrize(
    ("text", "words"),
    [("hub: x\n", "hub"), ("- a\n", "a mapping"), ("a: [\n", "cannot be read"), ("model-hub: 1\n", "model-hub")],
)
def test_an_unusable_mirror_file_is_refused(fresh: pytest.MonkeyPatch, tmp_path: Path, text: str, words: str) -> None:
    own = tmp_path / "upstream.yml"
    own.write_text(text)
    fresh.setenv(OVERRIDE, str(own))
    with pytest.raises(RigError) as caught:
        upstream()
    assert words in str(caught.value)
    assert caught.value.fix
