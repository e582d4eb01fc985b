"""Jobs: what makes two the same, how many processes they get, and how one is followed."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import rig_job
from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure

from llamarig.converge import jobs

PARAMS = {"commands": [["a"]], "scripts": {}, "environment": {}, "properties": []}


def test_arguments_survive_the_script() -> None:
    words = ["printf", "%s\n", "a b", "$HOME", "'\"`;", "-DX=$ORIGIN/../lib;$ORIGIN", "ü"]
    done = subprocess.run(["sh"], input=rig_job._script([words], 2), capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == words[2:]


def test_the_script_stops_at_the_first_failure_and_knows_its_jobs() -> None:
    script = rig_job._script([["false"], ["echo", "{jobs}"]], 7)
    done = subprocess.run(["sh"], input=script, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "echo 7" in script


def test_a_job_is_the_same_whatever_its_processes() -> None:
    same = rig_job._identity(dict(PARAMS))
    assert rig_job._identity({**PARAMS, "jobs": 9}) == same
    assert rig_job._identity({**PARAMS, "commands": [["b"]]}) != same
    assert rig_job._identity({**PARAMS, "properties": ["Nice=1"]}) != same


def test_memory_limits_the_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rig_job.os, "sched_getaffinity", lambda _: set(range(16)))
    monkeypatch.setattr(rig_job.Path, "read_text", lambda _: "MemTotal: 99999999 kB\nMemAvailable: 16777216 kB\n")
    assert rig_job._jobs(0, 4096) == 4
    assert rig_job._jobs(0, 512) == 16
    assert rig_job._jobs(0, 999_999) == 1
    assert rig_job._jobs(3, 4096) == 3


class Asked:
    """An action plugin whose host gives the answers in order."""

    def __init__(self, answers: list[str | Exception], result: dict[str, Any] | None = None) -> None:
        self.answers = answers
        self.result = result or {"rc": 0, "result": "success"}
        self.modules: list[str] = []
        self.lock = {"failed": False}

    def _low_level_execute_command(self, _: str) -> dict[str, str]:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return {"stdout": answer}

    def _execute_module(self, name: str, *_: Any, **_more: Any) -> dict[str, Any]:
        self.modules.append(name)
        return dict(self.lock if name == "rig_lock" else self.result)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    events: list[tuple[Any, ...]] = []
    monkeypatch.setattr(jobs, "progress", lambda *event: events.append(event))
    monkeypatch.setattr(jobs, "INTERVAL_S", 0.0)
    return events


def _follow(asked: Asked, **job: Any) -> dict[str, Any]:
    job = {"name": "j", "directory": "/j", **job}
    return jobs.follow(asked, job, "build x", "steps", {"inventory_hostname": "h"})


def test_steps_become_progress_once_each(told: list[tuple[Any, ...]]) -> None:
    result = _follow(Asked(["running\n", "running\n[1/9] a\n[2/9] b\n", "running\n[2/9] b\n", "exited\n[9/9] z\n"]))
    assert told == [("h", "build x", 2, 9, "steps"), ("h", "build x", 9, 9, "steps")]
    assert result["changed"]
    assert not result.get("failed")


def test_a_cut_connection_is_waited_for(told: list[tuple[Any, ...]]) -> None:
    cut = AnsibleConnectionFailure("cut")
    assert not _follow(Asked(["running\n", cut, cut, "exited\n[9/9] z\n"])).get("failed")


def test_a_host_that_stays_away_ends_the_wait(told: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "OUTAGE_S", -1.0)
    with pytest.raises(AnsibleConnectionFailure):
        _follow(Asked(["running\n", AnsibleConnectionFailure("cut")]))


@pytest.mark.parametrize(
    ("ended", "fix"), [("oom-kill", "job-mib"), ("signal", "apply again"), ("exit-code", "the tool's own")]
)
def test_a_failed_job_says_why_and_what_to_do(told: list[tuple[Any, ...]], ended: str, fix: str) -> None:
    result = _follow(Asked(["failed\n"], {"rc": 1, "result": ended, "error": "main.cpp:8: error: no"}))
    assert result["failed"]
    assert result["msg"].startswith("build x failed (exit status 1):\nmain.cpp:8: error: no\nfix: ")
    assert fix in result["msg"]


def test_a_long_job_keeps_the_lock_and_stops_when_it_is_lost(
    told: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "LOCK_EVERY_S", 0.0)
    asked = Asked(["running\n", "running\n", "exited\n"])
    _follow(asked, lock={"operation": "renew"})
    assert asked.modules == ["rig_lock", "rig_lock", "rig_job"]
    lost = Asked(["running\n"])
    lost.lock = {"failed": True}
    with pytest.raises(AnsibleActionFail, match="no longer holds the host's lock"):
        _follow(lost, lock={"operation": "renew"})


def test_the_download_script_that_a_host_gets_stands_alone() -> None:
    script = jobs.utilities() / "rig_download.py"
    done = subprocess.run(
        ["python3", "-I", script, "ftp://x/", "/nowhere", "1"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "error: ftp://x/: only http and https are fetched\n")
    assert Path(script).is_file()
