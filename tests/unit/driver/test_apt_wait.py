"""Waiting for another apt or dpkg: real locks of a real process, on files of the test's own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.observe.load import module

waiting = module("rig_apt_wait")
HOLD = (
    "import fcntl, sys, time; file = open(sys.argv[1], 'r+'); fcntl.lockf(file, fcntl.LOCK_EX);"
    "print('held', flush=True); time.sleep(float(sys.argv[2]))"
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in waiting.LOCKS:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


@pytest.fixture
def held(root: Path, request: pytest.FixtureRequest) -> Iterator[int]:
    """The process that holds a lock for so many seconds."""
    name, seconds = request.param
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(root / name), str(seconds)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process.pid
    process.kill()
    process.communicate()


@pytest.mark.parametrize("held", [(name, 30) for name in waiting.LOCKS], indirect=True)
def test_whoever_holds_a_lock_is_named(root: Path, held: int) -> None:
    still, _, waited = waiting.wait(root, 0)
    assert still.endswith(f"(process {held})")
    assert still.startswith(sys.executable)
    assert waited < 5


@pytest.mark.parametrize("held", [(waiting.LOCKS[0], 1)], indirect=True)
def test_it_goes_on_once_the_other_has_ended(root: Path, held: int) -> None:
    still, last, _ = waiting.wait(root, 20)
    assert still == ""
    assert f"(process {held})" in last


def test_without_locks_nobody_is_waited_for(root: Path, tmp_path: Path) -> None:
    assert waiting.wait(root, 0)[0] == ""
    assert waiting.wait(tmp_path / "nothing", 0)[:2] == ("", "")
