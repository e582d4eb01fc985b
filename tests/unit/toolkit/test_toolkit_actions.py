"""What makes an apply touch a toolkit, and what does not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from llamarig.compare import compare, probe_list
from llamarig.compare.action import ORDER, Action
from llamarig.compare.load import wanted_from_json
from llamarig.render.wanted import Wanted, WantedToolkit
from tests.support.compare.cases import observation, sha, wanted_state

PREFIX = "/opt/llamarig/cuda/13.0.88"
TOOLKIT = WantedToolkit(
    version="13.0.88",
    prefix=PREFIX,
    source="wheels",
    location="",
    sha256="",
    wheels={"nvidia-cuda-nvcc==13.0.88": sha("wheel")},
    header_fix=False,
    id=sha("toolkit"),
    compiler="g++-14",
    architectures=("120a-real", "89-real"),
)


def wanted() -> Wanted:
    return replace(wanted_state(), toolkit=TOOLKIT)


def actions(observed: dict[str, Any], of: Wanted | None = None) -> list[Action]:
    return [action for action in compare(of or wanted(), observed) if action.kind == "toolkit"]


def seen(**changes: Any) -> dict[str, Any]:
    observed = observation(wanted())
    observed["toolkits"]["13.0.88"] |= changes
    return observed


def test_one_that_is_as_it_was_installed_is_left_alone() -> None:
    assert compare(wanted(), seen()) == []
    assert actions(observation(wanted_state()), wanted_state()) == []


def test_one_that_is_missing_is_installed_and_restarts_nothing() -> None:
    [action] = actions(seen() | {"toolkits": {}})
    assert (action.subject, action.reason, action.restarts) == (PREFIX, "is not installed", ())
    assert ORDER.index("directory") < ORDER.index("toolkit") < ORDER.index("release")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"wrong": ["bin/nvcc was changed"], "wrong-count": 1}, "bin/nvcc was changed"),
        ({"wrong": ["a", "b", "c", "d"], "wrong-count": 90}, "a; b; c and 87 more"),
        ({"manifest": {"id": sha("other")}}, "was made of other parts than the spec pins"),
        ({"manifest": None}, "manifest.json is missing"),
        ({"mode": "0777"}, "mode 0777 instead of 0755"),
        ({"owner": "mallory"}, "owner mallory instead of root"),
        ({"type": "link"}, "is a link instead of a dir"),
        ({"wrong": "none", "wrong-count": None}, "was not looked at"),
        ({"wrong": ["\x1b[2Jgone"], "wrong-count": 1}, r"\x1b[2Jgone"),
    ],
)
def test_every_difference_is_one_action_and_restarts_nothing(changes: dict[str, Any], reason: str) -> None:
    [action] = actions(seen(**changes))
    assert action.reason == reason
    assert action.restarts == ()


def test_a_manifest_that_was_changed_with_its_files_is_told_by_the_record() -> None:
    observed = seen()
    observed["record"]["files"][f"{PREFIX}/manifest.json"] = {"sha256": sha("as recorded"), "stat": []}
    [action] = actions(observed)
    assert action.reason == "manifest.json was changed after the toolkit was recorded"
    observed["record-state"] = "edited"
    assert actions(observed) == []


def test_the_host_is_asked_for_the_toolkit_that_is_wanted() -> None:
    assert probe_list(wanted())["toolkit"] == "13.0.88"
    assert probe_list(wanted_state())["toolkit"] == ""


def test_it_travels_as_json() -> None:
    assert wanted_from_json(wanted().to_json()) == wanted()
