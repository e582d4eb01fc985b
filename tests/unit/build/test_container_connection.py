"""The connection into a container: what goes in, what comes out apart, and what a lost container is told as.

The engine is a stand-in that speaks its form of an exec stream: frames of a kind, a length and content.
"""

from __future__ import annotations

import socket
import struct
import threading
from pathlib import Path
from typing import Any

import pytest
from ansible.errors import AnsibleConnectionFailure, AnsibleFileNotFound
from ansible.playbook.play_context import PlayContext
from docker.errors import DockerException

from tests.support.artifacts.onhost import load


def frame(kind: int, data: bytes) -> bytes:
    return struct.pack(">BxxxL", kind, len(data)) + data


class Engine:
    """An engine with one running container; ``files`` are those that ``cat`` finds there."""

    def __init__(self) -> None:
        self.running, self.code = True, 0
        self.got: list[bytes] = []
        self.commands: list[list[str]] = []
        self.files: dict[str, bytes] = {}
        self.archives: list[bytes] = []
        self.api = self

    def inspect_container(self, _name: str) -> dict[str, Any]:
        return {"State": {"Running": self.running}}

    def exec_create(self, _name: str, command: list[str], **_how: object) -> dict[str, str]:
        self.commands.append(command)
        return {"Id": "x"}

    def exec_start(self, _id: str, **_how: object) -> socket.socket:
        here, there = socket.socketpair()
        threading.Thread(target=self._serve, args=(there, self.commands[-1]), daemon=True).start()
        return here

    def _serve(self, link: socket.socket, command: list[str]) -> None:
        with link:
            given = b""
            while block := link.recv(1 << 16):
                given += block
            self.got.append(given)
            if command[0] == "/bin/cat":
                link.sendall(frame(1, self.files[command[-1]]) if command[-1] in self.files else frame(2, b"no such"))
                self.code = 0 if command[-1] in self.files else 1
                return
            half = len(given) // 2
            link.sendall(frame(1, given[:half]) + frame(2, b"beside ") + frame(1, given[half:]) + frame(2, b"it"))

    def exec_inspect(self, _id: str) -> dict[str, Any]:
        return {"ExitCode": self.code if self.running else None}

    def put_archive(self, _name: str, _place: str, content: bytes) -> None:
        self.archives.append(content)

    def close(self) -> None:
        self.got.append(b"closed")


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    made = Engine()
    monkeypatch.setattr("docker.from_env", lambda **_how: made)
    return made


@pytest.fixture
def connection(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Any:
    plugin = load("connection/rig_container.py").Connection(PlayContext())
    monkeypatch.setattr(plugin, "get_option", lambda _name: "c0ffee")
    return plugin


def test_what_goes_in_ends_and_what_comes_out_is_kept_apart(connection: Any, engine: Engine) -> None:
    data = bytes(range(256)) * (3 << 12)
    assert connection.exec_command("tee", in_data=data) == (0, data, b"beside it")
    assert engine.got == [data]
    assert engine.commands == [["/bin/sh", "-c", "tee"]]


def test_an_exit_status_is_the_commands_own(connection: Any, engine: Engine) -> None:
    engine.code = 7
    assert connection.exec_command("false")[0] == 7


def test_a_container_that_ended_is_unreachable(connection: Any, engine: Engine) -> None:
    engine.running = False
    with pytest.raises(AnsibleConnectionFailure, match="does not run any more"):
        connection.exec_command("true")


def test_one_that_ends_while_a_command_runs_is_lost(connection: Any, engine: Engine) -> None:
    connection.exec_command("true")
    engine.running = False
    with pytest.raises(AnsibleConnectionFailure, match="was lost while"):
        connection.exec_command("true")


def test_an_engine_that_refuses_is_told_in_its_words(
    connection: Any, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_words: object, **_how: object) -> None:
        raise DockerException("no such container")

    monkeypatch.setattr(engine, "exec_create", refuse)
    with pytest.raises(AnsibleConnectionFailure, match="no such container"):
        connection.exec_command("true")


def test_files_go_in_and_come_back_private(connection: Any, engine: Engine, tmp_path: Path) -> None:
    source, target = tmp_path / "in", tmp_path / "out"
    source.write_bytes(b"content")
    connection.put_file(str(source), "/var/x")
    assert b"content" in engine.archives[0]
    engine.files["/var/x"] = b"back\0again"
    connection.fetch_file("/var/x", str(target))
    assert target.read_bytes() == b"back\0again"
    assert target.stat().st_mode & 0o777 == 0o600
    with pytest.raises(AnsibleFileNotFound, match="no such"):
        connection.fetch_file("/var/y", str(target))
    with pytest.raises(AnsibleFileNotFound):
        connection.put_file(str(tmp_path / "absent"), "/var/x")


def test_closing_lets_the_engine_go_and_the_next_command_finds_it_again(connection: Any, engine: Engine) -> None:
    connection.exec_command("true")
    connection.close()
    assert engine.got[-1] == b"closed"
    assert connection.exec_command("true")[0] == 0
