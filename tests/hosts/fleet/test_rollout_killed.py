"""The controller dies, or a host is cut off, in the middle of a rollout: nothing is left between two states."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lab import Host, faults
from lab.project import chat

from llamarig.fleet.rollout import journal
from llamarig.fleet.rollout.state import State

SEED = int(os.environ.get("LLAMARIG_SEED", random.SystemRandom().randrange(1 << 32)))
"""Printed with every failure; set it to see the same kill points again."""


def killed(process: subprocess.Popen[str]) -> None:
    """SIGKILL of the controller alone: what it started here has to end by itself."""
    started = faults.descendants(process.pid)
    with contextlib.suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    faults.wait_for("the end of all that the rollout started", lambda: not any(map(faults.runs, started)), 90)


def test_a_rollout_killed_anywhere_is_brought_to_an_end(rolling: Any, capsys: pytest.CaptureFixture[str]) -> None:
    points, dice = 20 if rolling.full else 1, random.Random(SEED)
    with capsys.disabled():
        sys.stdout.write(f"\nLLAMARIG_SEED={SEED}, points: {points}\n")
    length = 45.0
    for number in range(points):
        former, asked, newest = rolling.context, rolling.other(), rolling.newest()
        rolling.want(asked)
        started = time.monotonic()
        process = rolling.start("--canary", "1")
        after = dice.uniform(0.5, length)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(after)
            length = time.monotonic() - started
        killed(process)
        where = f"seed {SEED}, point {number}: killed after {after:.1f} s"
        if rolling.newest() == newest or not (rolling.place() / journal.FILE).read_bytes().count(b"\n"):
            # It had not begun: nothing of it is to be seen.
            assert rolling.windows() == dict.fromkeys(rolling.names, former), where
            rolling.rig("start", "--all", "--yes").ok()
        elif State.read(rolling.place()).status != "done":
            told = rolling.told()
            phases = {name: host.phase for name, host in told.hosts.items()}
            # Every other time it is ended instead of gone on with: then only hosts in the middle are touched.
            if number % 2:
                rolling.rig("abort", "--yes").ended(1)
                for name, window in rolling.windows().items():
                    assert window in {former, asked}, f"{where}: {name} {phases}"
                rolling.rig("start", "--all", "--yes").ok()
            else:
                rolling.rig("resume", "--yes").ok()
        assert rolling.windows() == dict.fromkeys(rolling.names, asked), where
        told = rolling.told()
        assert told.status == "done", where
        assert not any(host.between for host in told.hosts.values()), where
    assert chat(rolling.hosts[-1], "Say hello.", tokens=8)
    assert rolling.rig("start", "--all", "--yes").ok().data["status"] == "done"


@contextlib.contextmanager
def cut_off(host: Host) -> Iterator[None]:
    """No packet passes, and the connections that are open end here at once, not after the time that ssh waits."""
    with faults.network_cut(host):
        for pid in connections_to(host):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        yield


def connections_to(host: Host) -> list[int]:
    """The ssh processes of this machine that lead there."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            name, *words = (place / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if name.startswith("ssh") and any(host.address in word.split("@") for word in words):
                found.append(int(place.name))
    return found


@pytest.mark.full_fleet
@pytest.mark.parametrize("patient", [False, True], ids=["told", "silent"])
def test_a_host_cut_off_in_the_middle_does_not_hold_up_the_others(rolling: Any, patient: bool) -> None:
    asked, newest = rolling.other(), rolling.newest()
    lost, *others = rolling.hosts[1:][::-1]
    others.append(rolling.hosts[0])
    rolling.want(asked)
    process = rolling.start("--canary", "1")
    rolling.wait(lost, "applying", since=newest)
    faults.wait_for("the host's lock", lambda: lost.exec("test -e /run/llamarig/lock", check=False).code == 0)
    with faults.network_cut(lost) if patient else cut_off(lost):
        stdout, stderr = process.communicate(timeout=900)
    assert process.returncode == 1, stdout + stderr
    told = rolling.told()
    assert told.status == "incomplete", stdout + stderr
    assert told.hosts[lost.name].phase == "unreachable"
    assert told.hosts[lost.name].between
    assert {told.hosts[host.name].phase for host in others} == {"done"}
    assert rolling.rig("resume", "--yes").ok().data["status"] == "done"
    assert rolling.windows() == dict.fromkeys(rolling.names, asked)
