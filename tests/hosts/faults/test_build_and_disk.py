"""A build that is cut off, and a disk that is too small: the service goes on, the next apply converges."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from lab import Host, Lab, faults
from lab.project import Project, chat, demo_spec
from lab.report import actions_of

UNIT = "llama-chat.service"
CURRENT = "/opt/llamarig/current"
RELEASES = "/opt/llamarig/releases"
MODEL = f"/var/lib/llamarig/models/sha256/{demo_spec()['models']['smol']['sha256']}"


def other_build() -> dict[str, Any]:
    """The demo's spec with a build option that makes another release of the same source."""
    spec = demo_spec()
    spec["engine"]["build"] = {"options": {"GGML_CPU_REPACK": False}}
    return spec


def running_release(host: Host) -> str:
    """The release whose binary the service runs, seen from the kernel."""
    pid = faults.main_pid(host, UNIT)
    return host.exec(f"readlink /proc/{pid}/exe").output.strip().removeprefix(f"{RELEASES}/").split("/")[0]


def assert_current_is_whole(host: Host) -> None:
    """``current`` leads to a release whose every file is what its provenance says."""
    check = (
        "import hashlib, json, pathlib; root = pathlib.Path('/opt/llamarig/current');"
        "files = json.loads((root / 'provenance.json').read_text())['files'];"
        "bad = [p for p, h in files.items() if hashlib.sha256((root / p).read_bytes()).hexdigest() != h];"
        "assert files and not bad, bad"
    )
    host.exec(["python3", "-c", check])


def start_build(host: Host, project: Project) -> tuple[subprocess.Popen[str], str]:
    """An apply that is in the middle of a build; with it the release that ran before."""
    before = running_release(host)
    project.describe(host, other_build())
    process = project.start("apply", host.name, "--yes", "--json")
    compiled = "find /var/lib/llamarig/build -name '*.o' | head -3 | wc -l"
    faults.wait_for("the first objects of the build", lambda: host.exec(compiled).output.strip() == "3", 300)
    return process, before


def kill_group(process: subprocess.Popen[str]) -> None:
    started = faults.descendants(process.pid)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    faults.wait_for("the end of all that the apply started here", lambda: not any(map(faults.runs, started)), 60)


def test_a_build_whose_controller_died_is_finished_by_the_next_apply(
    another: Callable[[str], Host], project: Project
) -> None:
    host = another("orphan")
    process, before = start_build(host, project)
    kill_group(process)
    assert running_release(host) == before
    assert_current_is_whole(host)
    assert chat(host, "Say hello.", tokens=8)
    project.rig("apply", host.name, "--yes", "--json", "--break-lock").ok()
    assert running_release(host) != before
    assert_current_is_whole(host)
    assert actions_of(project.rig("apply", host.name, "--yes", "--json").ok().data) == []


def test_a_host_that_lost_power_in_a_build_serves_the_old_release_and_converges(
    lab: Lab, another: Callable[[str], Host], project: Project
) -> None:
    host = another("blackout")
    process, before = start_build(host, project)
    faults.pull_the_plug(host)
    stdout, stderr = process.communicate(timeout=300)
    assert process.returncode == 3, stdout + stderr
    host = lab.host("blackout")
    project.describe(host, other_build())
    faults.wait_for("the old release", lambda: running_release(host) == before, 60)
    assert_current_is_whole(host)
    project.rig("apply", host.name, "--yes", "--json").ok()
    assert running_release(host) != before
    assert chat(host, "Say hello.", tokens=8)


def test_a_disk_without_room_for_the_model_is_refused_before_anything_is_touched(
    another: Callable[[str], Host], project: Project
) -> None:
    host = another("full")
    host.ssh(f"systemctl stop {UNIT}; rm {MODEL}")
    with faults.small_disk(host, "/var/lib/llamarig/models", 40):
        ran = project.rig("apply", host.name, "--yes", "--json")
        assert ran.code in {2, 3}, ran.stdout + ran.stderr
        assert "MiB" in ran.stdout + ran.stderr
        assert host.exec("find /var/lib/llamarig/models -type f -size +1M").output == ""
    project.rig("apply", host.name, "--yes", "--json").ok()
    assert chat(host, "Say hello.", tokens=8)


@pytest.mark.parametrize("victim", ["controller", "host"])
def test_killed_in_the_middle_of_a_switch(
    lab: Lab, another: Callable[[str], Host], project: Project, victim: str
) -> None:
    host = another(f"mid-{victim}")
    before = running_release(host)
    project.describe(host, other_build())
    process = project.start("apply", host.name, "--yes", "--json")
    watch = f'while [ "$(readlink {CURRENT})" = releases/{before} ]; do sleep 0.02; done'
    host.exec(f"timeout 900 sh -c '{watch}'")
    if victim == "controller":
        kill_group(process)
    else:
        faults.pull_the_plug(host)
        process.communicate(timeout=300)
        host = lab.host(host.name)
        project.describe(host, other_build())
    assert_current_is_whole(host)
    project.rig("apply", host.name, "--yes", "--json", "--break-lock").ok()
    assert running_release(host) != before
    assert_current_is_whole(host)
    assert chat(host, "Say hello.", tokens=8)
    assert actions_of(project.rig("apply", host.name, "--yes", "--json").ok().data) == []
