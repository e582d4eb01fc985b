"""Five faults that every run of the tests plants. After each one the next apply converges."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import time
from pathlib import Path

from lab import Host, faults
from lab.project import Project, chat, demo_spec
from lab.report import actions_of

UNIT = "llama-chat.service"
MODELS = "/var/lib/llamarig/models"
MODEL = f"{MODELS}/sha256/{demo_spec()['models']['smol']['sha256']}"
ON_THE_WAY = f"find {MODELS}/incoming /var/lib/llamarig/incoming -type f -size"
"""Where a file lies until all of it is there."""


def kill_group(process: subprocess.Popen[str]) -> None:
    """End an apply and all it started here, at once, as a closed laptop would."""
    started = faults.descendants(process.pid)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    faults.wait_for("the end of all that the apply started here", lambda: not any(map(faults.runs, started)), 60)


def test_a_killed_service_is_restarted_by_systemd(demo: Host) -> None:
    before = faults.main_pid(demo, UNIT)
    faults.kill(demo, before)
    faults.wait_for(
        "another process of the unit",
        lambda: (
            faults.main_pid(demo, UNIT) not in {0, before}
            and demo.exec(f"systemctl is-active {UNIT}", check=False).output.strip() == "active"
        ),
        60,
    )
    assert chat(demo, "Say hello.", tokens=8)


def test_of_two_applies_at_once_the_second_says_who_holds_the_lock(demo: Host, project: Project) -> None:
    demo.ssh(f"rm {MODEL}")
    with faults.slow_network(demo, 60):
        first = project.start("apply", demo.name, "--yes", "--json")
        faults.wait_for(
            "the lock of the first apply", lambda: demo.exec("cat /run/llamarig/lock", check=False).code == 0
        )
        second = project.rig("apply", demo.name, "--yes", "--json")
    stdout, stderr = first.communicate(timeout=300)
    assert first.returncode == 0, stdout + stderr
    assert second.code == 3, second.stdout + second.stderr
    said = second.stdout + second.stderr
    assert "lock" in said
    assert str(first.pid) in said or os.uname().nodename in said, said
    assert actions_of(project.rig("apply", demo.name, "--yes", "--json").ok().data) == []


def test_an_interrupted_model_copy_leaves_no_half_model(demo: Host, project: Project) -> None:
    demo.ssh(f"systemctl stop {UNIT}; rm {MODEL}")
    assert demo.ssh(f"{ON_THE_WAY} +1M") == ""
    with faults.slow_network(demo, 60):
        process = project.start("apply", demo.name, "--yes", "--json")
        begun = f"{ON_THE_WAY} +4M"
        faults.wait_for("the first mebibytes of the model", lambda: demo.exec(begun, check=False).output != "")
        kill_group(process)
    assert demo.exec(f"test -e {MODEL}", check=False).code != 0, "half a model lies under its final name"
    ran = project.rig("apply", demo.name, "--yes", "--json", "--break-lock").ok()
    assert "model" in {action["kind"] for action in actions_of(ran.data)}
    assert demo.ssh(f"sha256sum {MODEL}").split()[0] == Path(MODEL).name
    assert chat(demo, "Say hello.", tokens=8)
    assert demo.ssh(f"{ON_THE_WAY} +1M") == ""


def test_a_corrupt_model_is_refused_and_the_old_one_goes_on(demo: Host, project: Project, tmp_path: Path) -> None:
    pid = faults.main_pid(demo, UNIT)
    model = tmp_path / "changed.gguf"
    with model.open("wb") as stream:
        subprocess.run([*demo.ssh_command(), f"cat {MODEL}"], stdout=stream, check=True)
    planted = model.read_bytes()[:-16] + b"another content "
    model.write_bytes(planted[:-16] + b"on the disk only")
    spec = demo_spec()
    digest = hashlib.sha256(planted).hexdigest()
    spec["models"]["smol"] = {"controller-path": str(model), "sha256": digest, "size": len(planted)}
    project.describe(demo, spec)
    try:
        ran = project.rig("apply", demo.name, "--yes", "--json")
    finally:
        project.describe(demo)
    assert ran.code in {2, 3}, ran.stdout + ran.stderr
    assert "sha256" in ran.stdout + ran.stderr
    assert faults.main_pid(demo, UNIT) == pid, "the running service was touched"
    assert chat(demo, "Say hello.", tokens=8)
    assert actions_of(project.rig("apply", demo.name, "--yes", "--json").ok().data) == []
    assert faults.main_pid(demo, UNIT) == pid, "the running service was touched"


def test_a_host_that_cannot_be_reached_is_named_and_the_next_apply_works(demo: Host, project: Project) -> None:
    # A connection is still open from this run: the host then falls silent, and refuses nothing.
    assert actions_of(project.rig("apply", demo.name, "--yes", "--json").ok().data) == []
    start = time.monotonic()
    with faults.network_cut(demo):
        ran = project.rig("apply", demo.name, "--yes", "--json")
    assert ran.code == 3, ran.stdout + ran.stderr
    assert "cannot be reached" in ran.stdout + ran.stderr
    # 30 to 40 s of silence; where nothing counts it, ssh waits two minutes.
    assert time.monotonic() - start < 60
    assert actions_of(project.rig("apply", demo.name, "--yes", "--json").ok().data) == []
