"""A converged host has nothing to do; each planted change gives exactly its own action."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llamarig.compare import Action, compare, restarts
from tests.support.compare.cases import (
    BUILT,
    KEYS,
    PROBE,
    SERVER,
    UNIT,
    Case,
    bare_observation,
    sha,
    wanted_state,
)
from tests.support.compare.changes import OLDER, add_drop_in, change_flag_in_spec, edit_unit, leave, remove_credential
from tests.support.compare.planted import BOTH, PLANTED, Planted


def one(case: Case) -> Action:
    actions = compare(case.wanted, case.observed)
    assert len(actions) == 1, [f"{action.kind} {action.subject}: {action.reason}" for action in actions]
    return actions[0]


def test_a_converged_host_has_nothing_to_do() -> None:
    case = Case()
    assert compare(case.wanted, case.observed) == []


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.name.replace(" ", "-"))
def test_a_planted_change_gives_exactly_its_own_action(planted: Planted) -> None:
    case = Case()
    planted.change(case)
    action = one(case)
    assert (action.kind, action.subject) == (planted.kind, planted.subject)
    assert planted.words in action.reason
    assert action.restarts == planted.restarts
    assert action.expected
    assert action.observed


def test_two_planted_changes_give_two_actions() -> None:
    case = Case()
    edit_unit(case)
    add_drop_in(case)
    remove_credential(case)
    assert [(action.kind, action.subject) for action in compare(case.wanted, case.observed)] == [
        ("credential", KEYS),
        ("file", UNIT),
        ("service", "chat"),
    ]


def test_a_fresh_host_lists_everything_once_and_in_order() -> None:
    wanted = wanted_state()
    actions = compare(wanted, bare_observation(wanted))
    assert [action.kind for action in actions] == [
        "package",
        "package",
        "user",
        "user",
        "user",
        "directory",
        "directory",
        "release",
        "model",
        "credential",
        "file",
        "file",
        "file",
        "switch",
        "record",
    ]
    assert len({(action.kind, action.subject) for action in actions}) == len(actions)
    assert restarts(actions, wanted) == ["chat", "embed"]


def test_a_new_release_is_built_and_switched_to_and_only_the_switch_restarts() -> None:
    case = Case()
    case.want(release=replace(case.wanted.release, id="4df29be4f-newnewnewnew"))
    actions = compare(case.wanted, case.observed)
    assert [(action.kind, action.restarts) for action in actions] == [("release", ()), ("switch", BOTH)]


def test_services_that_swap_their_ports_are_no_strangers_to_each_other() -> None:
    case = Case()
    first, second = case.wanted.services
    case.want(services=(replace(first, port=8081), replace(second, port=8080)))
    assert "port" not in {action.kind for action in compare(case.wanted, case.observed)}


def test_the_json_form_of_the_wanted_state_compares_alike() -> None:
    case = Case()
    edit_unit(case)
    assert compare(case.wanted.to_json(), case.observed) == compare(case.wanted, case.observed)
    assert compare(Case().wanted.to_json(), Case().observed) == []


def test_an_argument_with_an_equals_sign_or_a_dash_is_told_apart() -> None:
    case = Case()
    case.process()["argv"] = [SERVER, "--model=x", "-ngl", "-1"]
    reason = one(case).reason
    assert "-ngl dropped" in reason
    assert "--ctx-size 4096 added" in reason


def test_the_release_is_what_was_built_not_what_its_name_says() -> None:
    case = Case()
    assert set(case.release()["files"]) > set(BUILT)
    case.release()["provenance"]["release"] = OLDER
    assert one(case).kind == "release"


def test_only_the_unit_is_blamed_for_a_changed_flag() -> None:
    case = Case()
    change_flag_in_spec(case)
    case.want(files=(replace(case.wanted.files[0], content="#!another probe\n"), *case.wanted.files[1:]))
    reasons = {action.subject: action.reason for action in compare(case.wanted, case.observed)}
    assert reasons == {
        PROBE: "the spec or llamarig itself changed its content",
        UNIT: "the spec changed: --ctx-size 4096 -> 8192",
    }


def test_a_record_that_names_a_file_of_others_does_not_have_it_removed() -> None:
    case = Case()
    for path in ("/etc/apt/sources.list.d/debian.sources", "/etc/llamarig/../passwd"):
        leave(case, path)
    assert compare(case.wanted, case.observed) == []


def test_a_file_that_no_record_knows_just_differs() -> None:
    case = Case()
    del case.observed["record"]["files"][PROBE]
    case.observed["files"][PROBE]["sha256"] = sha("other")
    assert one(case).reason == "differs from what the spec renders"
