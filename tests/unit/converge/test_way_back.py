"""Whether a rollback can be done is known before anybody is asked."""

from __future__ import annotations

from typing import Any

import pytest

from llamarig.compare.state import state_of
from llamarig.converge.controller import controller_facts
from llamarig.converge.way_back import Former, former_state, way_back
from llamarig.errors import ExitCode, RigError
from tests.support.compare.cases import bare_observation, observation, wanted_state

WANTED = wanted_state()
KEPT = {"release": "a-1", "run": "r1", "from": "ada@desk", "at": "2026-11-29T16:00:00Z"}
HELD = {"run": "r2", "who": "ada", "from": "desk", "machine": "other", "pid": 7, "started": "1", "age-s": 3.0}


def seen(**parts: Any) -> dict[str, Any]:
    return observation(WANTED) | {"former": KEPT} | parts


def test_the_former_state_is_named_by_time_and_release() -> None:
    assert way_back("demo", seen()) == Former("a-1", "2026-11-29T16:00:00Z")
    assert str(way_back("demo", seen())) == "files of 2026-11-29T16:00:00Z, release a-1"


def test_status_names_the_state_that_a_rollback_goes_back_to() -> None:
    observed = seen()
    observed["record"]["former-release"] = "another"
    told = state_of(WANTED, observed)["release"]
    assert (told["former"], told["former-at"]) == ("a-1", KEPT["at"])
    assert state_of(WANTED, seen(former=None))["release"]["former"] is None


@pytest.mark.parametrize(
    ("observed", "words"),
    [
        (bare_observation(WANTED), "never applied"),
        (seen(former=None), "no former state"),
        (seen(former={"release": ""}), "no former state"),
        (seen(former="hostile"), "no former state"),
        (seen(lock=HELD), "ada on desk"),
    ],
)
def test_what_cannot_be_done_is_said_with_a_fix(observed: dict[str, Any], words: str) -> None:
    with pytest.raises(RigError, match="demo") as refused:
        way_back("demo", observed)
    assert words in refused.value.what
    assert refused.value.fix
    assert refused.value.code == ExitCode.HOST_FAILED


@pytest.mark.parametrize(
    "lock", [{**controller_facts(), "started": "0"}, {**HELD, "age-s": 1000.0}], ids=["its process is gone", "ran out"]
)
def test_a_lock_that_would_be_taken_over_is_no_hindrance(lock: dict[str, Any]) -> None:
    assert way_back("demo", seen(lock=lock)).release == "a-1"


def test_a_lock_is_broken_on_request_and_a_broken_state_is_none() -> None:
    assert way_back("demo", seen(lock=HELD), break_lock=True).release == "a-1"
    assert former_state({"former": [1]}) is None
