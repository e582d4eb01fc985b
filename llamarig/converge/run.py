"""The one place that starts Ansible.

``ansible-playbook`` is run as a child with this interpreter; what happens in it
comes back as events (:mod:`llamarig.converge.events`). Measured against
ansible-runner: the same child without the copies of its output and events that
a runner leaves on disk, and a fifth faster (1.3 s against 1.6 s for one ping).
"""

from __future__ import annotations

import contextlib
import itertools
import json
import locale
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from llamarig.converge.events import SOCKET_VARIABLE, Event, EventServer, Sink
from llamarig.converge.private import write_private
from llamarig.paths import data_root

HostVariables = Mapping[str, Mapping[str, Any]]

FORKS = 32
"""Hosts that are worked on at once, at most."""

_FAILED = {"failed", "unreachable"}


@dataclass
class HostOutcome:
    """What one host's results say: counts, the last failure, and results that were asked for by name."""

    changed: int = 0
    failures: list[Event] = field(default_factory=list)
    ran: bool = False
    """Whether any task had a result."""
    results: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Action name -> its last result (those that the callback returns whole)."""


@dataclass
class Run:
    """A finished run. ``messages`` are Ansible's own words outside of tasks (a parse error, a crash)."""

    status: int
    hosts: dict[str, HostOutcome]
    messages: str = ""


PASSED_ON = frozenset({"ANSIBLE_VAULT_PASSWORD_FILE", "ANSIBLE_VAULT_IDENTITY_LIST"})
"""The only ANSIBLE_* variables of the caller that reach Ansible: how vaulted key files are opened.

The others could switch off what a spec promises (a checked host key) or leave keys on a host (kept remote files).
"""


def _environment(private: Path, listening: Path) -> dict[str, str]:
    root = data_root()
    package_parent = str(Path(__file__).resolve().parents[2])
    environment = {
        name: value
        for name, value in os.environ.items()
        if name in PASSED_ON or not name.lstrip("_").upper().startswith("ANSIBLE_")
    }
    environment.update(
        ANSIBLE_CONFIG=str(root / "ansible.cfg"),
        ANSIBLE_STDOUT_CALLBACK="llamarig_events",
        ANSIBLE_LOCAL_TEMP=str(private / "tmp"),
        ANSIBLE_NOCOLOR="1",
        PYTHONPATH=os.pathsep.join(filter(None, [package_parent, os.environ.get("PYTHONPATH", "")])),
    )
    environment[SOCKET_VARIABLE] = str(listening)
    if "utf" not in (locale.getlocale()[1] or "").lower():
        environment["LC_ALL"] = "C.UTF-8"
    return environment


class _Collector:
    """Keeps the sums per host and passes every event on."""

    def __init__(self, hosts: HostVariables, sink: Sink | None) -> None:
        self.hosts = {name: HostOutcome() for name in hosts}
        self._sink = sink

    def __call__(self, event: Event) -> None:
        outcome = self.hosts.get(str(event.get("host", "")))
        if outcome is not None and event.get("event") == "result":
            status = event.get("status")
            outcome.ran = True
            outcome.changed += status == "changed"
            if status in _FAILED:
                outcome.failures.append(event)
            if isinstance(event.get("result"), dict):
                outcome.results[str(event["action"])] = event["result"]
        if self._sink is not None:
            self._sink(event)


def _not_alone() -> list[str]:
    """What lets Ansible get a Ctrl-C when llamarig itself is killed: nobody would follow it, and it holds the lock.

    Empty where util-linux is not at hand. The signal is made effective first, since a shell
    starts background jobs with it ignored.
    """
    if shutil.which("setpriv") is None:
        return []
    return ["env", "--default-signal=INT", "setpriv", "--pdeathsig", "INT", "--"]


def end(child: subprocess.Popen[bytes], patience_s: float = 20.0) -> None:
    """End Ansible as its own Ctrl-C does, so that it ends its workers; by force when it does not end in time."""
    try:
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=patience_s)
    except subprocess.TimeoutExpired:
        pass
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _unused(private: Path, playbook: str) -> str:
    """A name for the files of a run: a verb may run a playbook a second time, to look again after a change, say."""
    names = itertools.chain([playbook], (f"{playbook}.{number}" for number in itertools.count(2)))
    return next(name for name in names if not (private / f"{name}.llamarig.json").exists())


def run_playbook(
    playbook: str,
    hosts: HostVariables,
    private: Path,
    *,
    sink: Sink | None = None,
    extra: Mapping[str, Any] | None = None,
) -> Run:
    """Run ``playbooks/<playbook>.yml`` on ``hosts`` with the variables given.

    ``private`` is a directory of :func:`~llamarig.converge.private.private_directory`;
    inventory and extra variables go there as files, so nothing is on a command line.
    ``sink`` gets every event as it happens. Never raises for a failed host.
    """
    name = _unused(private, playbook)
    inventory = write_private(private / f"{name}.llamarig.json", json.dumps({"prepared": hosts}))
    command = [*_not_alone(), sys.executable, "-m", "ansible", "playbook", "--inventory", str(inventory)]
    command += ["--forks", str(max(1, min(FORKS, len(hosts))))]
    if extra:
        variables = write_private(private / f"{name}.variables.json", json.dumps(extra))
        command += ["--extra-vars", f"@{variables}"]
    command.append(str(data_root() / "playbooks" / f"{playbook}.yml"))
    collector = _Collector(hosts, sink)
    listening = private / "events"
    with EventServer(listening, collector):
        child = subprocess.Popen(  # noqa: S603 - fixed program, arguments made here
            command,
            env=_environment(private, listening),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=data_root(),
            # A Ctrl-C reaches this process alone; what happens to the child is decided here.
            start_new_session=True,
        )
        try:
            said, _ = child.communicate()
        except BaseException:
            end(child)
            raise
    return Run(child.returncode, collector.hosts, said.decode(errors="replace").strip())
