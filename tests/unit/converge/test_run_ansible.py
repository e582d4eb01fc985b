"""Ansible as llamarig starts it: a real run on this machine (connection local), and on one that is not there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from llamarig.compare import probe_list
from llamarig.converge.observe import observe_variables
from llamarig.converge.private import private_directory, write_private
from llamarig.converge.run import run_playbook
from llamarig.errors import ExitCode, RigError
from tests.support.compare.cases import wanted_state

LOCAL = {"ansible_connection": "local", "ansible_python_interpreter": "/usr/bin/python3"}


def probe() -> dict[str, Any]:
    return probe_list(wanted_state())


def test_hosts_answer_and_fail_each_for_itself(tmp_path: Path) -> None:
    away = {
        "ansible_connection": "ssh",
        "ansible_host": "127.0.0.1",
        "ansible_port": 1,
        "ansible_python_interpreter": "/usr/bin/python3",
        "ansible_ssh_common_args": "-o BatchMode=yes -o ControlPath=none",
    }
    hosts: dict[str, dict[str, Any]] = {
        "here": {**LOCAL, "llamarig_probe": probe()},
        "away": {**away, "llamarig_probe": probe()},
    }
    with private_directory() as private:
        answers = observe_variables(hosts, private)
        left = {path.name for path in private.iterdir()}
    here, gone = answers["here"], answers["away"]
    assert isinstance(here, dict)
    assert here["schema"] == 1
    assert isinstance(gone, RigError)
    assert "Connection refused" in gone.why
    assert gone.code == ExitCode.HOST_FAILED
    assert "observe.llamarig.json" in left, "what was handed over lies in the private directory, wiped by now"


def test_nothing_of_a_spec_is_ever_a_template(tmp_path: Path) -> None:
    """A value that looks like a template reaches the module as it is written."""
    seen: list[dict[str, Any]] = []
    text = "{{ lookup('pipe', 'touch " + str(tmp_path / "owned") + "') }}"
    hosts = {"here": {**LOCAL, "llamarig_probe": {**probe(), "files": [f"/{text}"]}}}
    with private_directory() as private:
        run = run_playbook("observe", hosts, private, sink=seen.append)
    observed = run.hosts["here"].results["rig_observe"]["observed"]
    assert list(observed["files"]) == [f"/{text}"]
    assert not (tmp_path / "owned").exists()
    assert {event["event"] for event in seen} >= {"task", "start", "result"}


def test_a_become_password_reaches_ansible_from_its_file_only(tmp_path: Path) -> None:
    with private_directory() as private:
        password = write_private(private / "sudo", "correct horse battery\n")
        hosts = {"here": {**LOCAL, "llamarig_become_password_file": str(password), "llamarig_probe": probe()}}
        run = run_playbook("observe", hosts, private)
        written = (private / "observe.llamarig.json").read_text()
    assert run.hosts["here"].results["rig_observe"]["observed"]["schema"] == 1
    assert "correct horse" not in written
    assert "correct horse" not in json.dumps(run.hosts["here"].results)


def test_an_open_password_file_stops_before_anything_runs(tmp_path: Path) -> None:
    with private_directory() as private:
        password = private / "sudo"
        password.write_text("x\n")
        password.chmod(0o644)
        hosts = {"here": {**LOCAL, "llamarig_become_password_file": str(password), "llamarig_probe": probe()}}
        run = run_playbook("observe", hosts, private)
        answer = observe_variables({"here": {**LOCAL, "llamarig_probe": 3}}, private)
    assert run.status != 0
    assert not run.hosts["here"].ran
    assert "open to others" in run.messages
    assert isinstance(answer["here"], RigError), "a module that refuses its arguments is an error, not an answer"


def test_a_verb_may_look_twice() -> None:
    hosts = {"here": {**LOCAL, "llamarig_probe": probe()}}
    with private_directory() as private:
        first, second = observe_variables(hosts, private), observe_variables(hosts, private)
    assert isinstance(first["here"], dict)
    assert isinstance(second["here"], dict)
    assert second["here"]["boot-id"] == first["here"]["boot-id"]


def test_a_playbook_that_is_not_there_says_so() -> None:
    with private_directory() as private:
        run = run_playbook("no-such-playbook", {"here": LOCAL}, private)
    assert run.status != 0
    assert "could not be found" in run.messages


@pytest.mark.parametrize("name", ["site", "rollback", "verify", "drift", "observe"])
def test_every_playbook_parses(name: str) -> None:
    import os
    import subprocess
    import sys

    root = Path(__file__).resolve().parents[3]
    done = subprocess.run(
        [sys.executable, "-m", "ansible", "playbook", "--syntax-check", "-i", "localhost,", f"playbooks/{name}.yml"],
        cwd=root,
        env={**os.environ, "ANSIBLE_CONFIG": str(root / "ansible.cfg"), "ANSIBLE_INVENTORY_ENABLED": "host_list"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
