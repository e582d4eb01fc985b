"""Run the playbook that makes a release, wherever it is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from llamarig.compare.probe_list import probe_list
from llamarig.converge.build.place import Task
from llamarig.converge.events import Sink
from llamarig.converge.explain import explain_all
from llamarig.converge.run import run_playbook
from llamarig.converge.store.releases import Releases
from llamarig.errors import ExitCode, RigError
from llamarig.render.build_place import wanted_build

if TYPE_CHECKING:
    from llamarig.spec.load import LoadedHost
    from llamarig.spec.overlay import Overlay


@dataclass(frozen=True)
class Given:
    """What the user gives a run on hosts, and a builder takes as well."""

    become_password_file: str | None = None
    break_lock: bool = False
    overlay: Overlay | None = None
    """Laid on the builder's spec, where it is the one that it names."""


@dataclass(frozen=True)
class Around:
    """What a build is given by the run that asks for it."""

    root: Path
    """The project, origin of relative paths."""
    private: Path
    """A directory of mode 0700, this build's own."""
    sink: Sink
    known: Mapping[str, LoadedHost]
    """Hosts that are loaded already; a builder that is not among them is looked up in the project."""
    given: Given = Given()


@dataclass(frozen=True)
class Machine:
    """Where it is built."""

    name: str
    """In the run, and so in what the user sees of it."""
    reach: Mapping[str, Any]
    """Ansible's variables that lead there."""
    place: Mapping[str, Any]
    """What provenance.json says of it."""


Stage = Literal["packages", "toolkit", "release"]
"""How far a build goes: to packages and users, to the toolkit, or to the packed release on the controller."""


def make(task: Task, machine: Machine, around: Around, until: Stage = "release") -> None:
    """Run ``playbooks/build.yml`` on one machine.

    Raises :class:`RigError` when it failed, and when it ended without the release on the controller.
    """
    where = machine.name
    wanted = wanted_build(task.spec)
    system = task.spec.os
    variables = {
        **machine.reach,
        "llamarig_project": str(around.root),
        "llamarig_os": {"distribution": system.distribution, "release": system.release},
        "llamarig_wanted": wanted.to_json(),
        "llamarig_probe": probe_list(wanted),
    }
    extra = {
        "llamarig_build_place": dict(machine.place),
        "llamarig_build_until": until,
        "llamarig_break_lock": around.given.break_lock,
    }
    run = run_playbook("build", {where: variables}, around.private, sink=around.sink, extra=extra)
    outcome = run.hosts[where]
    if outcome.failures:
        raise explain_all(where, outcome.failures)
    done = Releases.default().get(task.release) is not None
    if run.status != 0 or (until == "release" and not done):
        why = f"{run.messages[-4000:]}\nansible-playbook ended with status {run.status}".strip()
        raise RigError("the build ended without a release", where, why, code=ExitCode.HOST_FAILED)
