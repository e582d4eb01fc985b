"""The system around: packages halfway, suspend, memory that ran out, services that start again and again."""

from __future__ import annotations

import re
from collections.abc import Iterator

from llamarig.prove.doctor.bundle import Bundle
from llamarig.prove.doctor.diagnosis import Diagnosis
from llamarig.prove.hostile import show

_BRANCH = re.compile(r"^.i\S*\s+(?:libnvidia|nvidia)\S* (?:\d+:)?(\d{3,4})\.", re.MULTILINE)
_KILLED = re.compile(r"oom-kill|out of memory: Killed process|killed by the OOM killer", re.IGNORECASE)
"""What the kernel and systemd write."""
RESTARTS = 5
"""Restarts of a service since it was started by hand that are more than chance."""


def half_installed(bundle: Bundle) -> Iterator[Diagnosis]:
    """dpkg stopped in the middle."""
    audit = bundle.text("dpkg-audit").strip()
    broken = re.findall(r"^.[FHUW]\S*\s+(\S+) ", bundle.text("packages"), re.MULTILINE)
    if audit or broken:
        yield Diagnosis(
            "packages-half-installed",
            "error",
            "packages are installed or configured only halfway",
            "a package's script failed (often a kernel module that does not build), or the installation was cut off",
            "`dpkg --configure -a` shows the error again; mend or remove that package, then `apt-get -f install`",
            show(audit.splitlines()[0] if audit else ", ".join(broken[:6]), 200),
        )


def mixed_branches(bundle: Bundle) -> Iterator[Diagnosis]:
    """Packages of two driver branches at once (ansible-role-nvidia-driver issue 33)."""
    branches = sorted(set(_BRANCH.findall(bundle.text("packages"))))
    if len(branches) > 1:
        yield Diagnosis(
            "driver-branches-mixed",
            "warning",
            f"driver packages of the branches {', '.join(branches)} are installed together",
            "a partial upgrade, or two sources of packages",
            "install the whole set of one version in one transaction; pin it",
        )


def suspended(bundle: Bundle) -> Iterator[Diagnosis]:
    """After a suspend CUDA fails until the module is reloaded (ollama issue 5464)."""
    line = next((line for line in bundle.lines("kernel-log") if "PM: suspend" in line), "")
    if line:
        yield Diagnosis(
            "was-suspended",
            "warning",
            "the machine was suspended since its boot",
            "CUDA often fails after that, until services are restarted or the uvm module is reloaded",
            "mask the sleep targets on a serving host; restart the services now",
            show(line.strip(), 160),
        )


def killed_for_memory(bundle: Bundle) -> Iterator[Diagnosis]:
    """The kernel or systemd ended a process for memory."""
    lines = [line for line in bundle.lines("kernel-log") + bundle.lines("server-log") if _KILLED.search(line)]
    if lines:
        yield Diagnosis(
            "killed-for-memory",
            "error",
            f"processes were ended for memory, {len(lines)} line{'s' * (len(lines) != 1)} of the log say so",
            "RAM ran out, or what the unit may have (`Memory cgroup`): prompt caches and checkpoints grow with "
            "use, and every server has its own",
            "see `llamarig plan` for RAM; lower cache-ram-mib and context-checkpoints; give the spec the real "
            "memory.total-mib",
            show(lines[-1].strip(), 200),
        )


def restart_loops(bundle: Bundle) -> Iterator[Diagnosis]:
    """A service that systemd starts again and again."""
    for block in bundle.text("units").split("\n\n"):
        values = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        unit, restarts = show(values.get("Id", ""), 60), values.get("NRestarts", "0")
        state, result = show(values.get("ActiveState", ""), 20), show(values.get("Result", ""), 40)
        if state == "failed" or (restarts.isascii() and restarts.isdigit() and int(restarts[:6]) > RESTARTS):
            yield Diagnosis(
                "service-fails",
                "error" if state == "failed" else "warning",
                f"{unit} is {state}, started again {show(restarts, 10)} times",
                f"its last end: {result}, status {show(values.get('ExecMainStatus', ''), 10)}",
                f"`journalctl -u {unit} -n 50` has the engine's words; known ones among them are explained here too",
            )


RULES = (half_installed, mixed_branches, suspended, killed_for_memory, restart_loops)
