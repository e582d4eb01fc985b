"""Jobs on a machine without systemd: they outlive whoever started them, and say how they ended."""

from __future__ import annotations

import getpass
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import rig_job
from ansible.module_utils import rig_detached

from llamarig.converge import jobs


class EndedError(Exception):
    """The module has answered."""


class Module:
    """As much of AnsibleModule as rig_job uses."""

    check_mode = False

    def __init__(self, **params: Any) -> None:
        given = {"scripts": {}, "environment": {}, "properties": [], "jobs": 1, "job_mib": 1, "mode": "0755"}
        self.params = given | params

    def fail_json(self, **answer: Any) -> None:
        raise EndedError(answer["msg"])


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    """Start a shell command as a job in ``tmp_path/job``."""
    monkeypatch.setattr(rig_detached, "SYSTEMD", tmp_path / "no-systemd")
    monkeypatch.setattr(jobs, "SYSTEMD", str(tmp_path / "no-systemd"))

    def start(command: str, *properties: str) -> dict[str, Any]:
        directory = str(tmp_path / "job")
        words = [["sh", "-c", command]]
        module = Module(name="j", directory=directory, commands=words, properties=list(properties))
        return rig_job._start(module, "j.service", tmp_path / "job/log")

    return start


def state(tmp_path: Path) -> str:
    """What the command of whoever follows the job prints."""
    command = jobs._state({"name": "j", "directory": str(tmp_path / "job")})
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True).stdout.strip()


def ended_state(tmp_path: Path) -> str:
    """The state, once it is another one than running."""
    deadline = time.monotonic() + 20
    while (now := state(tmp_path)) == "running":
        assert time.monotonic() < deadline, "it runs and runs"
        time.sleep(0.05)
    return now


def ended(tmp_path: Path) -> dict[str, Any]:
    """The collected result, once the job has ended."""
    ended_state(tmp_path)
    return rig_job._collect("j.service", tmp_path / "job/log")


def test_a_job_that_ends_well(job: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    assert job("echo '[1/2] one'; echo two >&2")["changed"]
    assert ended(tmp_path) | {"log": ""} == {
        "changed": False, "unit": "j.service", "log": "", "result": "success", "rc": 0, "error": ""
    }  # fmt: skip
    assert (tmp_path / "job/log").read_text() == "[1/2] one\ntwo\n"


def test_one_that_fails_says_so_in_its_own_words(job: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    job("echo 'main.cpp:1:1: error: no such thing'; exit 7")
    result = ended(tmp_path)
    assert (result["rc"], result["result"]) == (7, "exit-code")
    assert "error: no such thing" in result["error"]


def test_one_that_is_killed_and_one_that_takes_too_long(job: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    job("kill -9 $$")
    assert ended(tmp_path)["rc"] != 0
    job("sleep 60", "RuntimeMaxSec=0.2")
    result = ended(tmp_path)
    assert (result["rc"], result["result"]) == (-1, "timeout")


def test_the_same_job_is_joined_while_it_runs_and_another_one_ends_it(
    job: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    job("sleep 60")
    leader = int((tmp_path / "job/pid").read_text().split()[0])
    assert state(tmp_path) == "running"
    assert job("sleep 60") == {
        "unit": "j.service", "log": str(tmp_path / "job/log"), "changed": False, "attached": True
    }  # fmt: skip
    assert job("true")["changed"]
    assert rig_detached.started_at(leader) == ""
    assert ended(tmp_path)["rc"] == 0


def test_one_whose_watcher_was_killed_is_lost_and_not_taken_for_another_process(
    job: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    job("sleep 60")
    leader = int((tmp_path / "job/pid").read_text().split()[0])
    os.kill(leader, 9)
    left = [pid for pid in rig_detached._session(leader) if pid != leader]
    assert ended_state(tmp_path) == "failed"
    assert ended(tmp_path)["result"] == "signal"
    assert left
    assert [pid for pid in left if rig_detached.started_at(pid)] == [], "what it left goes on"
    (tmp_path / "job/pid").write_text(f"{os.getpid()} 1 llamarig job j x\n")
    assert rig_detached.shown(tmp_path / "job")["SubState"] == "failed"
    rig_detached.clear(tmp_path / "job")
    assert rig_detached.started_at(os.getpid())


def test_it_outlives_the_process_that_started_it(tmp_path: Path) -> None:
    directory = tmp_path / "job"
    directory.mkdir()
    (directory / "run.sh").write_text("sleep 1; echo late\n")
    script = (
        "import tests.support.artifacts.onhost; from pathlib import Path;"
        "from ansible.module_utils import rig_detached;"
        f"rig_detached.start(Path({str(directory)!r}), 'x', {{}}, [])"
    )
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    subprocess.run([sys.executable, "-c", script], env=environment, check=True, timeout=20)
    assert (directory / "log").read_text() == ""
    deadline = time.monotonic() + 20
    while not (directory / "rc").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert (directory / "log").read_text() == "late\n"


def test_a_job_that_must_have_no_network_is_refused_where_there_is_one(
    job: Callable[..., dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("lo", "eth0"):
        (tmp_path / "net" / name).mkdir(parents=True)
    monkeypatch.setattr(rig_detached, "INTERFACES", tmp_path / "net")
    with pytest.raises(EndedError, match=r"must run without a network.*eth0"):
        job("true", "PrivateNetwork=yes")
    assert not (tmp_path / "job/pid").exists()
    (tmp_path / "net/eth0").rmdir()
    job("true", "PrivateNetwork=yes")
    assert ended(tmp_path)["rc"] == 0


def test_an_unknown_user_is_an_error_and_ones_own_is_fine(job: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    with pytest.raises(EndedError, match="nobody-here"):
        job("true", "User=nobody-here")
    job("id -un", f"User={getpass.getuser()}")
    assert ended(tmp_path)["rc"] == 0
    assert (tmp_path / "job/log").read_text().strip() == getpass.getuser()


def test_bound_paths_become_links(job: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real/file").write_text("here\n")
    target = tmp_path / "fixed/src"
    job(f"cat {target}/file", f"BindReadOnlyPaths={tmp_path}/real:{target}", f"BindPaths={tmp_path}/real")
    assert ended(tmp_path)["rc"] == 0
    assert (tmp_path / "job/log").read_text() == "here\n"
    assert target.readlink() == tmp_path / "real"
