"""Many hosts are planned on all cores, and come out as one by one."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from llamarig.errors import ExitCode, RigError
from llamarig.plan import many, plan_project, plan_projects
from llamarig.plan.measured import measured_path
from tests.support.plan_specs import CPU, spec

SPECS = [spec(CPU, {"context": 4096 + 256 * number}, host=f"box-{number}") for number in range(many.WORTHWHILE)]


@pytest.mark.parametrize("count", [1, many.WORTHWHILE])
def test_many_are_planned_as_each_alone(tmp_path: Path, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: {0, 1, 2})
    planned = plan_projects(SPECS[:count], tmp_path)
    assert planned == [plan_project(each, tmp_path) for each in SPECS[:count]]
    assert [each.host for each in planned] == [f"box-{number}" for number in range(count)]


def test_an_error_of_one_host_reaches_the_caller_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: {0, 1})
    path = measured_path(tmp_path, "box-7")
    path.parent.mkdir()
    path.write_text("{")
    with pytest.raises(RigError, match="measured memory cannot be read") as caught:
        plan_projects(SPECS, tmp_path)
    assert caught.value.where == str(path)
    assert caught.value.fix


def test_errors_survive_the_way_between_processes() -> None:
    error = RigError("what", "where", "why", "fix", ExitCode.HOST_FAILED)
    assert pickle.loads(pickle.dumps(error)) == error
