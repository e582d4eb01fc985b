"""A release that the controller holds is copied: the host wants no compiler, and every reason says so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from llamarig.compare import compare
from llamarig.compare.load import wanted_from_json
from llamarig.compare.redo import changes
from llamarig.compare.view import view_of
from llamarig.converge.store.releases import Held, Releases
from llamarig.converge.wanted import wanted_for
from llamarig.render.build import copied
from llamarig.render.wanted import TOOLKITS, Wanted
from llamarig.spec.load import LoadedHost
from tests.golden import cases
from tests.support.compare.cases import BUILT, RELEASE, observation, wanted_state


def held() -> Wanted:
    return copied(wanted_state(), "a" * 64, 1000)


def release_actions(wanted: Wanted, observed: dict[str, Any]) -> list[str]:
    return [action.reason for action in compare(wanted, observed) if action.kind == "release"]


def test_it_is_copied_where_it_is_missing() -> None:
    observed = observation(wanted_state())
    observed["releases"] = {}
    assert release_actions(held(), observed) == ["is not there, and is copied from the controller"]
    assert release_actions(wanted_state(), observed) == ["is not built"]


def test_it_is_copied_where_it_was_damaged_and_what_runs_it_starts_again() -> None:
    observed = observation(wanted_state())
    observed["releases"][RELEASE]["files"]["bin/llama-server"]["sha256"] = BUILT["lib/libggml.so.0"]
    [action] = [each for each in compare(held(), observed) if each.kind == "release"]
    assert action.reason.startswith("bin/llama-server was replaced")
    assert action.reason.endswith("; it is copied from the controller")
    assert action.restarts == ("chat", "embed")


def test_one_that_is_there_is_left_alone() -> None:
    assert compare(held(), observation(wanted_state())) == []


def test_a_rebuild_says_that_nothing_is_built() -> None:
    observed = observation(wanted_state())
    observed["releases"], observed["current"] = {}, "releases/older"
    rows = {}
    for name, wanted in (("copied", held()), ("built", wanted_state())):
        [row] = [row for row in changes(view_of(wanted, observed), compare(wanted, observed)) if row.what == "engine"]
        rows[name] = row.redone
    assert rows == {
        "copied": "nothing is built: the engine is copied from the controller",
        "built": "the engine is built",
    }


def test_neither_compiler_nor_toolkit_is_wanted_for_it() -> None:
    before = cases.wanted_of("twin")
    after = copied(before, "a" * 64, 1000)
    assert before.toolkit is not None
    assert after.toolkit is None
    assert {"g++", "cmake", "ccache"} <= set(before.packages)
    assert set(after.packages) == {"ca-certificates", "libgomp1", "python3"}
    assert TOOLKITS in {path for path, *_ in before.directories}
    assert TOOLKITS not in {path for path, *_ in after.directories}
    assert (after.release.id, after.release.inputs) == (before.release.id, before.release.inputs)
    assert wanted_from_json(after.to_json()) == after


def test_what_the_controller_holds_is_found_by_the_release_id(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = cases.spec_of("demo")
    loaded = LoadedHost.__new__(LoadedHost)
    object.__setattr__(loaded, "spec", spec)
    plan, mine = cases.plan_of(spec), cases.wanted_of("demo").release.id
    asked = []

    def get(_store: Releases, release: str) -> Held | None:
        asked.append(release)
        return Held(release, "b" * 64, 7, "maker", "now") if len(asked) > 1 else None

    monkeypatch.setattr(Releases, "get", get)
    assert wanted_for(Path(cases.HERE), loaded, plan).release.artifact is None
    found = wanted_for(Path(cases.HERE), loaded, plan).release.artifact
    assert found is not None
    assert (found.sha256, found.size, asked) == ("b" * 64, 7, [mine, mine])


def test_the_hash_is_no_part_of_the_identity() -> None:
    assert replace(held().release, artifact=None) == wanted_state().release
