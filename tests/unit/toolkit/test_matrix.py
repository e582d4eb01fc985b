"""The catalog's matrix: what it says of every toolkit, and that each rule on it can fire."""

from __future__ import annotations

from itertools import pairwise

import pytest

from llamarig.catalog import toolkits
from llamarig.catalog.gpus import cards
from tests.support.observe.load import part


def test_every_minor_version_takes_a_newer_compiler_and_no_fewer_new_architectures() -> None:
    known = list(toolkits.minors().items())
    assert [name for name, _ in known] == sorted(toolkits.minors(), key=lambda name: [int(n) for n in name.split(".")])
    compilers = [each.newest_gcc for _, each in known]
    assert compilers == sorted(compilers)
    for (_, before), (_, after) in pairwise(known):
        gone = {name for name in before.architectures if name not in after.architectures}
        assert all(int(name.rstrip("af")) < 75 or name.startswith("101") for name in gone)


@pytest.mark.parametrize(
    ("version", "architecture", "made"),
    [
        ("12.6.85", "120", False),
        ("12.8.93", "120a", True),
        ("12.8.93", "120f", False),
        ("12.9.86", "120f", True),
        ("12.9.86", "61", True),
        ("13.0.88", "61", False),
        ("13.0.88", "120a", True),
    ],
)
def test_which_toolkit_makes_code_for_which_architecture(version: str, architecture: str, made: bool) -> None:
    known = toolkits.minor(version)
    assert known is not None
    assert (architecture in known.architectures) is made


def test_every_card_of_the_catalog_has_code_from_some_toolkit() -> None:
    able = {name for each in toolkits.minors().values() for name in each.architectures}
    assert {card.architecture for card in cards().values()} <= able


@pytest.mark.parametrize(
    ("version", "system", "needed"),
    [
        ("12.9.86", "debian 13", True),
        ("12.4.131", "debian 13", True),
        ("13.0.88", "debian 13", False),
        ("12.9.86", "debian 12", False),
        ("12.9.86", "ubuntu 24.04", False),
        ("12.9.86", "ubuntu 99.04", False),
    ],
)
def test_headers_are_mended_where_toolkit_and_libc_clash(version: str, system: str, needed: bool) -> None:
    assert toolkits.needs_header_fix(version, system) is needed


def test_the_family_suffix_needs_a_newer_cmake_than_any_proven_system_has() -> None:
    assert not any(toolkits.takes_family_suffix(name) for name in ("debian 13", "debian 12", "ubuntu 24.04"))
    assert toolkits.takes_family_suffix("debian 14")


@pytest.mark.parametrize(
    ("cmake", "takes"), [("3.31.7", False), ("3.31.8", True), ("4.0.1", False), ("4.0.2", True), ("4.1.0", True)]
)
def test_the_versions_of_cmake_that_let_the_family_suffix_through(
    monkeypatch: pytest.MonkeyPatch, cmake: str, takes: bool
) -> None:
    known = toolkits.System(gcc="14", glibc="2.41", cmake=cmake)
    monkeypatch.setattr(toolkits, "system", lambda _name: known)
    assert toolkits.takes_family_suffix("debian 13") is takes


def test_the_engines_own_cmake_decides_by_the_build() -> None:
    assert toolkits.rewrites_plain(toolkits.first_rewriting_build())
    assert not toolkits.rewrites_plain(toolkits.first_rewriting_build() - 1)


def test_wheels_are_a_toolkit_from_13_on() -> None:
    assert toolkits.wheel_names("12.9.86") == {}
    assert set(toolkits.wheel_names("13.0.88")) == {
        "nvidia-cuda-nvcc",
        "nvidia-nvvm",
        "nvidia-cuda-crt",
        "nvidia-cuda-runtime",
        "nvidia-cuda-cccl",
        "nvidia-cublas",
    }


def test_a_version_nobody_looked_at_is_not_judged() -> None:
    assert toolkits.minor("11.8.89") is None
    assert toolkits.first_driver("14.0") is None


def test_a_runfile_is_searched_for_what_a_list_of_archives_is_taken_from() -> None:
    assert set(part("rig_cuda_parts").COMPONENTS) == set(toolkits.components()[0])
