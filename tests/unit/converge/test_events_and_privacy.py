"""Events come whole and in order, and what is private is gone afterwards."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from llamarig.converge import events
from llamarig.converge.events import SOCKET_VARIABLE, EventServer, emit, progress
from llamarig.converge.private import private_directory, write_private


def test_events_of_several_processes_never_mix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, Any]] = []
    with EventServer(tmp_path / "events", seen.append):
        monkeypatch.setenv(SOCKET_VARIABLE, str(tmp_path / "events"))
        child = (
            "import sys; from llamarig.converge.events import emit\n"
            "for n in range(20): emit({'who': sys.argv[1], 'n': n, 'pad': sys.argv[1] * 50_000})"
        )
        started = [subprocess.Popen([sys.executable, "-c", child, str(who)]) for who in range(3)]
        assert [each.wait(60) for each in started] == [0, 0, 0]
    assert len(seen) == 60
    for who in ("0", "1", "2"):
        assert [event["n"] for event in seen if event["who"] == who] == list(range(20))
        assert all(event["pad"] == who * 50_000 for event in seen if event["who"] == who)
    assert not (tmp_path / "events").exists()


def test_without_a_listener_nothing_happens(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(SOCKET_VARIABLE, raising=False)
    assert emit({"event": "key"}) is False
    monkeypatch.setenv(SOCKET_VARIABLE, str(tmp_path / "nobody"))
    assert progress("demo", "build", 1, 2, "steps") is False


def test_what_is_no_event_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, Any]] = []
    with EventServer(tmp_path / "events", seen.append):
        for text in (b"", b"not json", b"[1]", b"\xff\xfe"):
            with socket.socket(socket.AF_UNIX) as link:
                link.connect(str(tmp_path / "events"))
                link.sendall(text)
        monkeypatch.setenv(SOCKET_VARIABLE, str(tmp_path / "events"))
        assert emit({"event": "real"})
    assert seen == [{"event": "real"}]


def test_what_is_too_long_or_too_deep_is_dropped_and_the_next_is_heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    seen: list[dict[str, Any]] = []
    monkeypatch.setattr(events, "LONGEST", 1000)
    monkeypatch.setenv(SOCKET_VARIABLE, str(tmp_path / "events"))
    with EventServer(tmp_path / "events", seen.append):
        emit({"event": "result", "host": "evil", "result": "x" * 1_000_000})
        monkeypatch.setattr(events, "LONGEST", 1 << 20)
        with socket.socket(socket.AF_UNIX) as link:
            link.connect(str(tmp_path / "events"))
            link.sendall(b'{"a":' * 100_000)
        deep: Any = "x"
        for _ in range(100_000):
            deep = [deep]
        assert emit({"event": "deep", "deep": deep}) is False
        assert emit({"event": "result", "host": "good"})
    assert seen == [{"event": "result", "host": "good"}]
    assert "Traceback" not in capfd.readouterr().err


def test_the_private_directory_is_the_users_alone_and_wiped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    tmp_path.chmod(0o700)
    with private_directory() as path:
        assert path.parent == tmp_path
        assert path.stat().st_mode & 0o777 == 0o700
        secret = write_private(path / "secret", "x")
        assert secret.stat().st_mode & 0o777 == 0o600
        with pytest.raises(FileExistsError):
            write_private(path / "secret", "y")
    assert not path.exists()


def test_a_runtime_directory_of_others_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o755)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with private_directory() as path:
        assert path.parent != tmp_path


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_leaves_nothing_behind(tmp_path: Path, number: int) -> None:
    program = (
        "import signal, time; from llamarig.converge.private import private_directory\n"
        # Whoever runs the tests in the background of a shell has SIGINT ignored, and children inherit that.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "with private_directory() as path: print(path, flush=True); time.sleep(60)"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path), "XDG_RUNTIME_DIR": ""}
    child = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    )
    assert child.stdout is not None
    path = Path(child.stdout.readline().strip())
    assert path.parent == tmp_path
    child.send_signal(number)
    assert child.wait(30) != 0
    assert list(tmp_path.iterdir()) == []


def test_events_survive_what_json_does_not_know(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, Any]] = []
    with EventServer(tmp_path / "events", seen.append):
        monkeypatch.setenv(SOCKET_VARIABLE, str(tmp_path / "events"))
        assert emit({"path": Path("/x")})
    assert json.dumps(seen) == '[{"path": "/x"}]'
