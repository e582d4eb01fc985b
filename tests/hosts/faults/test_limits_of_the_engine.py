"""The planned memory limit against the real engine, under a kernel that enforces it.

The demo host's release, model, keys and unit are laid into the virtual machine as they are: there the
planned MemoryMax is enough for the real server, and one that is too small ends it without harming the machine.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest
from lab import Host
from lab.faults import wait_for
from lab.machine import Machine

UNIT = "llama-chat.service"
PLACES = ("opt/llamarig", "etc/llamarig", "var/lib/llamarig", f"etc/systemd/system/{UNIT}")
SLOW = "[Service]\nTimeoutStartSec=1500\n"
"""The processor is emulated, so a start takes minutes: the time limit alone is not the rendered one."""
TOO_SMALL_MIB = 64
USER = "llama-chat"


def libraries(host: Host) -> list[str]:
    """Files of the system's own libraries that the server is linked with, beyond what every Debian has."""
    listed = host.ssh("ldd /opt/llamarig/current/bin/llama-server")
    found = [line.split("=>")[1].split()[0] for line in listed.splitlines() if "=> /" in line]
    real = host.ssh("readlink -f " + " ".join(each for each in found if not each.startswith("/opt/"))).split()
    return sorted({each.lstrip("/") for each in (*found, *real) if not each.startswith("/opt/")})


@pytest.fixture(scope="module")
def machine(demo: Host) -> Iterator[Machine]:
    """A booted machine with all that the demo host serves with, and the service running."""
    with Machine(memory_mib=2048) as booted:
        packed = ["tar", "-c", "-C", "/", *PLACES]
        with subprocess.Popen([*demo.ssh_command(), " ".join(packed)], stdout=subprocess.PIPE) as sender:
            subprocess.run([*booted.ssh_command(), "tar -x -C /"], stdin=sender.stdout, check=True, timeout=600)
        assert sender.returncode == 0
        shared = " ".join(libraries(demo))
        with subprocess.Popen([*demo.ssh_command(), f"tar -c -C / {shared}"], stdout=subprocess.PIPE) as sender:
            unpack = "tar -x --skip-old-files -C /"
            subprocess.run([*booted.ssh_command(), unpack], stdin=sender.stdout, check=True, timeout=600)
        assert sender.returncode == 0
        booted.ssh(f"useradd --system --user-group --no-create-home --shell /usr/sbin/nologin {USER}")
        drop_in(booted, "slow", SLOW)
        booted.ssh(f"systemctl start {UNIT} 2>&1 || true", seconds=1600)
        state = booted.ssh(f"systemctl is-active {UNIT}", check=False).strip()
        assert state == "active", booted.ssh(f"journalctl -u {UNIT} --no-pager | tail -40")
        yield booted


def drop_in(machine: Machine, name: str, text: str) -> None:
    directory = f"/etc/systemd/system/{UNIT}.d"
    machine.ssh(f"mkdir -p {directory} && cat > {directory}/{name}.conf <<'end'\n{text}end\nsystemctl daemon-reload")


def cgroup(machine: Machine, name: str) -> int:
    """A figure of the unit's control group, in the kernel's own words."""
    path = machine.ssh(f"systemctl show -P ControlGroup {UNIT}").strip()
    return int(machine.ssh(f"cat /sys/fs/cgroup{path}/{name}"))


def test_the_planned_limit_is_enforced_and_enough_for_the_engine(machine: Machine) -> None:
    limit = cgroup(machine, "memory.max")
    assert limit == int(machine.ssh(f"systemctl show -P MemoryMax {UNIT}"))
    peak = cgroup(machine, "memory.peak")
    assert 96 << 20 < peak <= limit, "the model alone has 94 MiB"
    assert (
        "oom_kill 0"
        in machine.ssh(f"cat /sys/fs/cgroup$(systemctl show -P ControlGroup {UNIT})/memory.events").splitlines()
    )


def test_the_planned_number_of_tasks_is_enough_for_the_engine(machine: Machine) -> None:
    assert 1 < cgroup(machine, "pids.current") <= cgroup(machine, "pids.peak") < cgroup(machine, "pids.max")


def test_a_limit_that_is_too_small_ends_the_engine_and_nothing_else(machine: Machine) -> None:
    before = machine.ssh("cat /proc/sys/kernel/random/boot_id")
    drop_in(machine, "small", f"[Service]\nMemoryMax={TOO_SMALL_MIB}M\nMemorySwapMax=0\nRestart=no\n")
    machine.ssh(f"systemctl restart {UNIT} 2>&1 || true", seconds=1600)
    journal = f"journalctl -u {UNIT} --no-pager"
    wait_for("the word of the OOM killer", lambda: "oom-kill" in machine.ssh(journal), 60)
    assert machine.ssh(f"systemctl is-active {UNIT}", check=False).strip() == "failed"
    assert machine.ssh("cat /proc/sys/kernel/random/boot_id") == before
    assert machine.ssh("systemctl is-active ssh.service").strip() == "active"
