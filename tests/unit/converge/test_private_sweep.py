"""Private directories of runs that were killed are swept, and no others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from llamarig.converge import private


def dead_pid() -> int:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def test_what_a_killed_run_left_is_swept_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private, "_parent", lambda: str(tmp_path))
    namespace = private._pid_namespace()
    dead = dead_pid()
    left = tmp_path / f"llamarig-{namespace}-{dead}-abc"
    kept = [
        tmp_path / f"llamarig-{namespace}-1-abc",
        tmp_path / f"llamarig-1-{dead}-abc",
        tmp_path / "llamarig-mine",
        tmp_path / f"other-{namespace}-{dead}-abc",
    ]
    for path in (left, *kept):
        path.mkdir()
        (path / "key").touch()
    link = tmp_path / f"llamarig-{namespace}-{dead}-link"
    link.symlink_to(kept[2])
    with private.private_directory() as own:
        assert not left.exists()
        assert own.stat().st_mode & 0o777 == 0o700
        with private.private_directory():
            assert own.exists(), "a run that lives keeps its own"
    assert all((path / "key").exists() for path in kept)
    assert link.is_symlink()
    assert not own.exists()


def test_a_directory_of_another_user_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private, "_parent", lambda: str(tmp_path))
    left = tmp_path / f"llamarig-{private._pid_namespace()}-{dead_pid()}-abc"
    left.mkdir()
    monkeypatch.setattr("os.getuid", lambda: 12345)
    with private.private_directory():
        assert left.exists()
