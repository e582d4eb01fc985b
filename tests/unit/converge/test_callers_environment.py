"""What the caller's environment says to Ansible never weakens how a host is reached."""

from __future__ import annotations

import configparser
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from llamarig.converge import run
from llamarig.converge.connection import SSH_ARGS, connection_variables
from llamarig.paths import data_root
from llamarig.spec.host import Connection

WEAKENED = "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"
HOSTILE = {
    "ANSIBLE_HOST_KEY_CHECKING": "False",
    "ANSIBLE_SSH_HOST_KEY_CHECKING": "False",
    "ANSIBLE_SSH_ARGS": WEAKENED,
    "ANSIBLE_SSH_EXTRA_ARGS": WEAKENED,
    "ANSIBLE_SSH_COMMON_ARGS": WEAKENED,
}


def stand_in(tmp_path: Path) -> Path:
    """A program named ``ssh`` that writes down its arguments and fails."""
    said = tmp_path / "said"
    program = tmp_path / "bin/ssh"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >> {said}\nexit 255\n')
    program.chmod(0o755)
    return said


def inventory(tmp_path: Path) -> Path:
    spec: Any = SimpleNamespace(host="demo", connection=Connection.model_validate({"address": "192.0.2.7"}))
    private = tmp_path / "private"
    private.mkdir()
    path = tmp_path / "hosts.llamarig.json"
    path.write_text(json.dumps({"prepared": {"demo": connection_variables(spec, tmp_path, private)}}))
    return path


def ping(tmp_path: Path, **more: str) -> str:
    environment = {**os.environ, "ANSIBLE_CONFIG": str(data_root() / "ansible.cfg"), **more}
    environment["PATH"] = f"{tmp_path / 'bin'}:{environment['PATH']}"
    environment["PYTHONPATH"] = str(Path(run.__file__).parents[2])
    command = [sys.executable, "-m", "ansible", "adhoc", "-i", str(inventory(tmp_path)), "demo", "-m", "ping"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=data_root())
    return done.stdout + done.stderr


def test_only_the_vault_words_of_the_caller_reach_ansible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    more = ("ANSIBLE_KEEP_REMOTE_FILES", "ANSIBLE_LIBRARY", "ANSIBLE_LOG_PATH", "_ANSIBLE_X", "ansible_debug")
    for name in (*HOSTILE, *more):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", "/somewhere/password")
    found = run._environment(tmp_path, tmp_path / "events")
    assert {name for name in found if "ANSIBLE" in name.upper()} == {
        "ANSIBLE_CONFIG",
        "ANSIBLE_LOCAL_TEMP",
        "ANSIBLE_NOCOLOR",
        "ANSIBLE_STDOUT_CALLBACK",
        "ANSIBLE_VAULT_PASSWORD_FILE",
    }


def test_with_plain_ansible_the_hosts_own_variables_win(tmp_path: Path) -> None:
    said = stand_in(tmp_path)
    answer = ping(tmp_path, **HOSTILE)
    words = said.read_text()
    assert "StrictHostKeyChecking=yes" in words, answer
    assert "StrictHostKeyChecking=no" not in words
    assert "/dev/null" not in words


def test_kept_remote_files_are_refused(tmp_path: Path) -> None:
    said = stand_in(tmp_path)
    assert "would leave keys on the host" in ping(tmp_path, ANSIBLE_KEEP_REMOTE_FILES="1")
    assert not said.exists()


def test_the_arguments_are_those_of_the_configuration_file() -> None:
    config = configparser.ConfigParser()
    config.read(data_root() / "ansible.cfg")
    assert config["ssh_connection"]["ssh_args"] == SSH_ARGS
