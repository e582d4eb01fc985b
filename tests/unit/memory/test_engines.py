"""Which memory model a version of the engine gets."""

from __future__ import annotations

from itertools import pairwise

import pytest

from llamarig.errors import RigError
from llamarig.memory.engines import (
    APRIL_2026,
    AUGUST_2026,
    CURRENT,
    ERAS,
    JUNE_2026,
    KNOWN_COMMITS,
    MAY_2026,
    OLDER,
    SEPTEMBER_2026,
    of_version,
)


@pytest.mark.parametrize(
    ("version", "era", "build"),
    [
        (None, CURRENT, None),
        ("b10454", JUNE_2026, 10_454),
        ("10454", JUNE_2026, 10_454),
        ("b10454-4df29be4f", JUNE_2026, 10_454),
        ("4df29be4f", JUNE_2026, 10_454),
        ("4df29be4f0123456789abcdef0123456789abcde", JUNE_2026, 10_454),
        ("5266f24", AUGUST_2026, 10_809),
        ("v0.1", JUNE_2026, None),
        ("0.4.0", AUGUST_2026, None),
        ("v0.5.0-dev", SEPTEMBER_2026, None),
        ("b10809", AUGUST_2026, 10_809),
        ("b10455", AUGUST_2026, 10_455),
        ("b10810", SEPTEMBER_2026, 10_810),
        ("b9489", JUNE_2026, 9489),
        ("b9488", MAY_2026, 9488),
        ("b9410", MAY_2026, 9410),
        ("b9409", APRIL_2026, 9409),
        ("b8607", APRIL_2026, 8607),
        ("b8606", OLDER, 8606),
        ("b1", OLDER, 1),
        ("031ddb2e08962837c899374297da75f91cc0157d", MAY_2026, 9410),
    ],
)
def test_a_version_has_an_era(version: str | None, era: object, build: int | None) -> None:
    found = of_version(version)
    assert (found.era, found.build) == (era, build)


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("b9000", "memory model of older builds (2026-04)"),
        ("b8000", "memory model of older builds (older)"),
        ("b11313", "b11313 is newer than b11312"),
        ("deadbeef01", "the build number of deadbeef01 is not known"),
    ],
)
def test_what_is_not_certain_is_said(version: str, words: str) -> None:
    assert words in of_version(version).note


@pytest.mark.parametrize("version", ["b10454", "0.1.0", "0c1e57098", None])
def test_nothing_is_said_of_a_version_whose_model_was_compared(version: str | None) -> None:
    assert of_version(version).note == ""


@pytest.mark.parametrize("version", ["", "latest", "b0", "1.0", "b99999999999", "4DF29BE4F", "b10454; rm"])
def test_what_is_no_version_is_refused(version: str) -> None:
    with pytest.raises(RigError, match="which is no build"):
        of_version(version)


def test_the_eras_follow_one_another_and_only_ever_gain() -> None:
    builds = [era.first_build for era in ERAS]
    assert builds == sorted(set(builds))
    for before, after in pairwise(ERAS):
        for trait in ("rotation", "half_mask", "outputs_only", "staging", "every_input"):
            assert getattr(after, trait) >= getattr(before, trait)


def test_known_commits_are_unambiguous() -> None:
    assert len({commit[:7] for commit in KNOWN_COMMITS}) == len(KNOWN_COMMITS)
    assert all(len(commit) == 9 for commit in KNOWN_COMMITS)
