"""A file travels in pieces over a connection that may be cut, and goes on behind what has arrived.

The host is a local shell: the commands are those that Ansible would run over SSH.
"""

from __future__ import annotations

import hashlib
import random
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure

from llamarig.converge.artifacts import Artifact
from llamarig.converge.store.shelf import Shelf
from tests.support.artifacts.onhost import load

PIECE = 1 << 20
CONTENT = random.Random(5).randbytes(5 * PIECE + 123)
SHA = hashlib.sha256(CONTENT).hexdigest()


class Host:
    """Runs commands here; ``cuts`` are the numbers of pieces with which the connection fails, once each."""

    def __init__(self, folder: Path) -> None:
        rig_push = load("action/rig_push.py")
        rig_push.PIECE = PIECE
        self.plugin = object.__new__(rig_push.ActionModule)
        self.plugin._task = SimpleNamespace(args={"directory": str(folder)})
        self.plugin._host = "here"
        self.plugin._lock = SimpleNamespace(renew=lambda: None)
        self.plugin._pace = rig_push.pace_of(0)
        self.plugin._shelf = Shelf.default()
        self.plugin._low_level_execute_command = self.run
        self.pieces: list[int] = []
        self.cuts: list[int] = []
        self.part = folder / f"{SHA}.part"

    def run(self, command: str, in_data: bytes | None = None) -> dict[str, Any]:
        if in_data is not None:
            self.pieces.append(len(in_data))
            if len(self.pieces) in self.cuts:
                # Half a piece arrives before the connection is gone.
                subprocess.run(["sh", "-c", command], input=in_data[: len(in_data) // 2], check=True)
                raise AnsibleConnectionFailure("cut")
        done = subprocess.run(["sh", "-c", command], input=in_data, capture_output=True, check=False)
        return {"rc": done.returncode, "stdout": done.stdout.decode(), "stderr": done.stderr.decode()}

    def send(self, source: Path) -> dict[str, Any]:
        sent: dict[str, Any] = self.plugin._send(Artifact(SHA, source), "model m")
        return sent


def test_the_parts_of_a_toolkit_travel_as_rig_toolkit_takes_them(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    host = Host(tmp_path)
    given = {"version": "12.9.86", "source": "archive", "location": str(source), "sha256": SHA, "wheels": {}}
    host.plugin._task.args["toolkit"] = given
    sent = host.plugin._toolkit(tmp_path)
    assert sent["changed"] is True
    assert sent["parts"] == [{"name": "source", "kind": "archive", "path": str(host.part), "sha256": SHA}]
    assert host.part.read_bytes() == CONTENT


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "source").write_bytes(CONTENT)
    return tmp_path / "source"


@pytest.fixture
def host(tmp_path: Path) -> Host:
    folder = tmp_path / "incoming"
    folder.mkdir()
    return Host(folder)


def test_a_file_arrives_whole(host: Host, source: Path) -> None:
    assert host.send(source) == {"changed": True, "path": str(host.part), "sha256": SHA, "size": len(CONTENT)}
    assert host.part.read_bytes() == CONTENT
    assert len(host.pieces) == 6


def test_what_is_there_is_not_sent_again(host: Host, source: Path) -> None:
    host.part.write_bytes(CONTENT)
    assert not host.send(source)["changed"]
    assert host.pieces == []


def test_it_goes_on_behind_what_has_arrived(host: Host, source: Path) -> None:
    host.part.write_bytes(CONTENT[: 3 * PIECE + 77])
    host.send(source)
    assert host.part.read_bytes() == CONTENT
    assert sum(host.pieces) == len(CONTENT) - 3 * PIECE - 77


def test_a_cut_connection_costs_one_piece(host: Host, source: Path) -> None:
    host.cuts = [3]
    host.send(source)
    assert host.part.read_bytes() == CONTENT
    assert len(host.pieces) == 7


def test_a_connection_that_stays_away_fails_and_a_later_run_goes_on(host: Host, source: Path) -> None:
    host.cuts = [3, 4, 5]
    with pytest.raises(AnsibleConnectionFailure):
        host.send(source)
    arrived = host.part.stat().st_size
    assert 2 * PIECE <= arrived < 3 * PIECE
    host.pieces, host.cuts = [], []
    host.send(source)
    assert host.part.read_bytes() == CONTENT
    assert sum(host.pieces) == len(CONTENT) - arrived


def test_a_part_that_is_too_long_or_a_link_is_none_of_ours(host: Host, source: Path, tmp_path: Path) -> None:
    host.part.write_bytes(CONTENT + b"x")
    host.send(source)
    assert host.part.read_bytes() == CONTENT
    host.part.unlink()
    victim = tmp_path / "victim"
    victim.write_bytes(b"")
    host.part.symlink_to(victim)
    host.send(source)
    assert victim.read_bytes() == b""
    assert host.part.read_bytes() == CONTENT
    assert not host.part.is_symlink()


def test_a_failed_copy_is_told_in_the_host_s_words(host: Host, source: Path) -> None:
    host.part.parent.rmdir()
    with pytest.raises(AnsibleActionFail, match=r"copying to the host failed: .*No such file or directory"):
        host.send(source)
