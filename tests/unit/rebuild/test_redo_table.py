"""The table of ``rebuild``: what changed decides what is done again, and nothing more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from llamarig.compare import compare
from llamarig.compare.redo import Change, changes
from llamarig.compare.view import View
from tests.support.compare.cases import RELEASE, Case
from tests.support.compare.driver_case import driver_case

VERSION = "610.57.04"
NEWER = "6.12.120+deb13-amd64"


@pytest.fixture
def case() -> Case:
    return driver_case()


def rows(case: Case) -> dict[str, Change]:
    view = View(case.wanted, case.observed)
    return {row.what: row for row in changes(view, compare(case.wanted, case.observed))}


def inputs(case: Case, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """The release that runs was built from ``before``; the wanted one is another, from ``after``."""
    case.observed["releases"][RELEASE]["provenance"]["inputs"] = dict(before)
    case.want(release=replace(case.wanted.release, id="another-0123456789ab", inputs=dict(after)))


def test_nothing_changed(case: Case) -> None:
    assert rows(case) == {}


def test_a_driver_builds_no_engine(case: Case) -> None:
    for entry in case.observed["driver"]["packages"].values():
        entry["version"] = "570.133.07-1"
    found = rows(case)
    assert list(found) == ["driver"]
    assert (found["driver"].before, found["driver"].after) == ("570.133.07", VERSION)
    assert "0 compile jobs" in found["driver"].why


def test_a_driver_that_only_waits_for_its_reboot(case: Case) -> None:
    case.observed["driver"]["loaded"] = "570.133.07"
    case.observed["gpus"] = [{"bus-id": "0000:01:00.0"}]
    assert (rows(case)["driver"].before, rows(case)["driver"].redone) == ("570.133.07", "a reboot")


@pytest.mark.parametrize(("state", "redone"), [("installed", "a reboot"), ("added", "the driver's module for it")])
def test_a_kernel_asks_for_its_module_and_a_reboot(case: Case, state: str, redone: str) -> None:
    case.observed["driver"]["kernels"][NEWER] = {"headers": True, "dkms": {f"nvidia/{VERSION}": state}}
    row = rows(case)["kernel"]
    assert row.after == NEWER
    assert redone in row.redone
    assert "release" not in rows(case)


@pytest.mark.parametrize(
    ("key", "values", "what", "shown"),
    [
        ("commit", ("aaaaaaaaa", "bbbbbbbbb"), "commit", ("aaaaaaaaa", "bbbbbbbbb")),
        ("toolkit", ("12.9.86", "13.0.2"), "CUDA toolkit", ("12.9.86", "13.0.2")),
        ("patches", (["one", "two"], ["one", "three"]), "patches", ("two", "three")),
        ("architectures", (["89-real"], ["120a-real", "89-real"]), "architectures", ("-", "120a-real")),
        (
            "cmake",
            ({"GGML_CUDA": "ON", "GGML_LTO": "OFF"}, {"GGML_CUDA": "ON", "GGML_LTO": "ON"}),
            "build options",
            ("GGML_LTO=OFF", "GGML_LTO=ON"),
        ),
    ],
)
def test_an_input_of_the_build_asks_for_a_build(
    case: Case, key: str, values: tuple[Any, Any], what: str, shown: tuple[str, str]
) -> None:
    same = {"backend": "cuda", "openssl": False}
    inputs(case, same | {key: values[0]}, same | {key: values[1]})
    found = rows(case)
    engine = [row for name, row in found.items() if not name.startswith(("service", "file"))]
    assert [row.what for row in engine] == [what]
    assert (engine[0].before, engine[0].after) == shown
    assert engine[0].redone == "the engine is built"


def test_a_release_that_is_there_is_switched_to_and_not_built(case: Case) -> None:
    inputs(case, {"commit": "a"}, {"commit": "b"})
    case.observed["releases"]["another-0123456789ab"] = {
        **case.observed["releases"][RELEASE],
        "provenance": {**case.observed["releases"][RELEASE]["provenance"], "release": "another-0123456789ab"},
    }
    case.observed["record"]["files"] = {
        path.replace(RELEASE, "another-0123456789ab"): entry for path, entry in case.observed["record"]["files"].items()
    }
    assert "nothing is built" in rows(case)["commit"].redone


def test_everything_else_is_told_as_the_comparison_has_it(case: Case) -> None:
    case.observed["packages"] = dict.fromkeys(case.wanted.packages)
    case.stop("chat")
    found = rows(case)
    assert any(name.startswith("package ") for name in found)
    assert "chat restarts" in found["service chat"].redone


def test_the_documented_form(case: Case) -> None:
    case.observed["driver"]["kernels"][NEWER] = {"headers": True, "dkms": {f"nvidia/{VERSION}": "installed"}}
    assert set(rows(case)["kernel"].to_json()) == {"what", "from", "to", "redone", "why"}
