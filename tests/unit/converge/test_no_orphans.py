"""When llamarig is killed, what it started ends as well: nobody would follow it, and it holds the host's lock."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PARENT = """
import signal, subprocess, sys, time
from llamarig.converge.run import _not_alone
prefix = _not_alone() if sys.argv[1] == "guarded" else []
signal.signal(signal.SIGINT, signal.SIG_IGN)
child = subprocess.Popen([*prefix, "sleep", "30"], start_new_session=True)
time.sleep(0.5)
print(child.pid, flush=True)
time.sleep(30)
"""


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize(("how", "survives"), [("guarded", False), ("bare", True)])
def test_a_killed_llamarig_takes_its_child_along(how: str, survives: bool) -> None:
    """Also when the caller had Ctrl-C ignored, as a shell's background job has."""
    with subprocess.Popen([sys.executable, "-c", PARENT, how], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert alive(child)
        parent.kill()
        parent.wait()
    try:
        deadline = time.monotonic() + 5
        while alive(child) and time.monotonic() < deadline and not survives:
            time.sleep(0.05)
        assert alive(child) is survives
    finally:
        if alive(child):
            os.kill(child, signal.SIGKILL)
