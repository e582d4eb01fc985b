"""Another machine than the spec means is refused before anything; an unfinished apply is told for what it is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from llamarig.compare import compare
from llamarig.converge.decide import decide
from llamarig.errors import ExitCode, RigError
from tests.support.compare.cases import UNIT, Case, bare_observation, sha
from tests.support.compare.changes import UNFINISHED


@pytest.mark.parametrize(
    ("changed", "words", "fix"),
    [
        ({"os": {"id": "debian", "version": "12"}}, "The host runs debian 12, its spec says debian 13.", "`os`"),
        ({"os": {"id": "fedora", "version": "42"}}, "The host runs fedora 42", "`connection`"),
        ({"os": None}, "The host runs unknown unknown", "`connection`"),
        ({"arch": "aarch64"}, "aarch64 machine", "`connection`"),
        ({"systemd": False}, "not run by systemd", "systemd"),
    ],
)
def test_another_machine_is_refused_whatever_else_is_to_be_done(changed: dict[str, Any], words: str, fix: str) -> None:
    case = Case()
    for observed in (case.observed, bare_observation(case.wanted)):
        with pytest.raises(RigError, match="The host") as refused:
            compare(case.wanted, observed | changed)
        assert words in refused.value.what
        assert fix in refused.value.fix
        assert refused.value.code == ExitCode.BAD_INPUT
        with pytest.raises(RigError):
            decide(case.wanted.to_json(), observed | changed)


def test_a_state_kept_without_its_system_is_not_judged_by_it() -> None:
    case = Case()
    assert compare(replace(case.wanted, system=""), case.observed | {"os": {}}) == []


def test_an_apply_whose_run_still_has_the_lock_may_be_under_way() -> None:
    case = Case()
    case.observed |= {"unfinished": UNFINISHED, "lock": {"run": UNFINISHED["run"], "who": "ada"}}
    (action,) = compare(case.wanted, case.observed)
    assert action.reason.endswith("has not been proven: it is under way, or was interrupted")
    case.observed["lock"]["run"] = "another"
    (action,) = compare(case.wanted, case.observed)
    assert action.reason.endswith("was interrupted before it was proven")


def test_a_file_that_an_interrupted_apply_wrote_is_not_blamed_on_an_edit() -> None:
    case = Case()
    case.observed["files"][UNIT]["sha256"] = sha("of the interrupted apply")
    edited = {action.subject: action.reason for action in compare(case.wanted, case.observed)}
    assert edited[UNIT] == "was edited on the host"
    case.observed["unfinished"] = UNFINISHED
    left = {action.subject: action.reason for action in compare(case.wanted, case.observed)}
    assert left[UNIT] == "was left like that by an interrupted apply, or edited on the host"


@pytest.mark.parametrize("hostile", [{}, [], "x", 3, {"at": "\x1b[2J", "from": 7}])
def test_an_unfinished_apply_of_which_nothing_is_known_is_still_one(hostile: object) -> None:
    case = Case()
    case.observed["unfinished"] = hostile
    (action,) = compare(case.wanted, case.observed)
    assert action.kind == "record"
    assert "\x1b" not in action.reason
